"use strict";
(() => {
  document.documentElement.classList.add("scripted");

  // ---- times in words, as the report has them -------------------------------------------

  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
  const duration = ns => {
    if (ns < 1000) return `${ns} ns`;
    const [size, unit] = UNITS.find(([size]) => ns >= size);
    const value = ns / size;
    return `${value.toFixed(value < 100 ? 3 : 1)} ${unit}`;
  };
  const exact = ns => `${String(ns).replace(/\B(?=(\d{3})+$)/g, " ")} ns`;

  // ---- tables: sorted by a heading, filtered by a word -----------------------------------

  const SIZES = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, B: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
  const weight = text => {
    const found = /^[x+]?(-?[\d., ]*\d)\s*([a-zA-Z]+|%)?/.exec(text.trim());
    if (!found) return null;
    const number = Number(found[1].replace(/[ ,]/g, ""));
    return Number.isNaN(number) ? null : number * (SIZES[found[2]] || 1);
  };
  const cellText = cell => cell.textContent || (cell.querySelector("svg") || cell).getAttribute("aria-label") || "";
  const compare = (a, b) => {
    const [x, y] = [weight(a), weight(b)];
    if (x !== null && y !== null) return x - y;
    if (x === null && y === null) return a.localeCompare(b);
    return x === null ? 1 : -1;
  };
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
    if (rows.length < 2) continue;
    heads.forEach((head, column) => {
      if (!head.textContent) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.title = "sort by this";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        const sign = down ? -1 : 1;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = rows.map((row, index) => [cellText(row.cells[column]), index, row]);
        keyed.sort((a, b) => sign * compare(a[0], b[0]) || a[1] - b[1]);
        body.append(...keyed.map(one => one[2]));
      });
    });
    // Fewer are seen at once.
    if (rows.length < 12) continue;
    const line = document.createElement("div"), input = document.createElement("input");
    const label = document.createElement("label"), count = document.createElement("span");
    line.className = "filter";
    input.type = "search";
    label.append("only rows with ", input);
    count.className = "count";
    count.setAttribute("role", "status");
    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every(word => text.includes(word));
        if (!row.hidden) shown += 1;
      }
      count.textContent = words.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
    };
    input.addEventListener("input", filter);
    line.append(label, count);
    table.parentElement.before(line);
    filter();
  }

  // ---- the timeline ----------------------------------------------------------------------

  const data = document.getElementById("data");
  if (!data) return;
  const chart = document.getElementById("chart");
  const told = words => {
    const line = document.createElement("p");
    line.textContent = words;
    chart.before(line);
  };

  const unpack = async text => {
    const bytes = Uint8Array.from(atob(text), char => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const summed = column => {
    let sum = 0;
    return Float64Array.from(column, step => (sum += step));
  };
  const timed = columns => {
    columns.start = summed(columns.start);
    columns.end = columns.start.map((start, index) => start + columns.length[index]);
    return columns;
  };
  const opened = lane => {
    timed(lane);
    lane.to_start = summed(lane.to_start);
    // What the colours are of: the spans, or what runs inside of them.
    lane.fills = lane.parts ? timed(lane.parts) : lane;
    return lane;
  };

  const COLOURS = {
    fwd: "--fwd", bwd: "--bwd", wg: "--wg", opt: "--opt", recompute: "--recompute", kernel: "--kernel",
    tp: "--tp", ep: "--ep", ep_intra: "--ep", ep_inter: "--ep", cp: "--ep", cp_a2a: "--ep", cp_p2p: "--ep", dp: "--dp", dp_ep: "--dp", all: "--dp", pp: "--pp", embedding: "--comm",
    position: "--comm", comm: "--comm", host: "--host", wait: "--wait", bubble: "--bubble", idle: "--idle",
    copy: "--copy",
  };
  const KIND_WORDS = {
    fwd: "forward", bwd: "backward", wg: "weight gradients", opt: "optimizer", recompute: "recompute",
    kernel: "kernel", all: "all ranks", dp_ep: "expert dp", comm: "communication",
  };
  const NAMELESS = new Set(["wait", "bubble", "idle"]);
  const LIGHT_TEXT = new Set(["bwd", "wg", "opt", "kernel"]);
  const ROW = 22, RULER = 26;

  const draw = all => {
    const make = (name, parent, words, css) => {
      const element = document.createElement(name);
      if (words) element.textContent = words;
      if (css) element.className = css;
      if (parent) parent.append(element);
      return element;
    };
    const { kinds, strings, runs } = all;
    const length = Math.max(1, ...runs.map(run => run.length));
    const used = new Set();
    for (const run of runs) {
      run.byNumber = new Map();
      for (const track of run.tracks) {
        opened(track.lane);
        track.streams.forEach(opened);
        run.byNumber.set(track.number, track);
        for (const lane of [track.lane, ...track.streams]) {
          for (const kind of lane.fills.kind) used.add(kind);
        }
      }
      if (run.path) {
        run.path.start = summed(run.path.start);
        run.path.of = new Map();
        run.path.start.forEach((start, index) => {
          const number = run.path.track[index];
          if (!run.path.of.has(number)) run.path.of.set(number, []);
          run.path.of.get(number).push(index);
        });
      }
    }

    // -- what stands around the picture --
    const tools = make("div", chart, "", "tools");
    const button = (words, title, act) => {
      const found = make("button", tools, words);
      found.type = "button";
      found.title = title;
      found.addEventListener("click", act);
      return found;
    };
    const room = make("div", chart, "", "room");
    const canvas = make("canvas", room);
    const names = make("div", room, "", "names");
    const fact = make("div", chart, "", "fact");
    fact.setAttribute("role", "status");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", "Timeline. Left and right: the span before and the next; up and down: " +
      "another lane; Enter: its streams; plus and minus: zoom; a and d: pan; 0: all; [: what it waited for.");
    const legend = make("ul", null, "", "legend");
    for (const kind of [...used].sort((a, b) => a - b)) {
      const name = kinds[kind], item = make("li", legend), key = make("canvas", item, "", "key");
      key.width = key.height = 12;
      key.dataset.kind = name;
      item.append(KIND_WORDS[name] || name);
    }
    if (runs.some(run => run.path && run.path.start.length)) {
      const item = make("li", legend);
      make("span", item, "", "path-key");
      item.append("below a lane: the critical path");
    }
    chart.after(legend);

    // -- state --
    let from = 0, to = length, rows = [], row = 0, span = -1, paths = true, pending = 0, printing = false;
    const unfolded = new Set();
    const single = runs.length === 1 && runs[0].tracks.length === 1;
    if (single) unfolded.add(runs[0].tracks[0]);

    // `stage 0, ranks 0-63`; a lane that is a rank's has it in its name.
    const whose = (title, ranks) => (title === `rank ${ranks}` ? title
      : `${title}, ${/[-,+]/.test(ranks) ? "ranks" : "rank"} ${ranks}`);
    const gutter = () => (room.clientWidth < 500 ? 96 : 190);
    const layOut = () => {
      rows = [];
      runs.forEach((run, index) => {
        if (runs.length > 1) rows.push({ run, title: `${"AB"[index]}  ${duration(run.length)}  ${run.name}` });
        for (const track of run.tracks) {
          rows.push({ run, track, lane: track.lane, title: track.title, folds: track.streams.length > 0 });
          if (unfolded.has(track)) for (const lane of track.streams) {
            rows.push({ run, track, lane, title: lane.title, stream: true });
          }
        }
      });
      row = Math.min(row, rows.length - 1);
      names.replaceChildren();
      room.style.setProperty("--gutter", `${gutter()}px`);
      rows.forEach((one, index) => {
        const name = make("button", names, "", "name");
        name.type = "button";
        const sign = one.folds ? (unfolded.has(one.track) ? "\u25be " : "\u25b8 ") : "";
        name.textContent = sign + one.title;
        name.style.top = `${RULER + index * ROW}px`;
        name.style.height = `${ROW}px`;
        name.style.lineHeight = `${ROW}px`;
        if (one.stream) name.classList.add("stream");
        if (!one.lane) name.classList.add("run");
        if (one.track) {
          name.title = whose(one.title, one.track.ranks);
        }
        if (one.folds) {
          name.setAttribute("aria-expanded", String(unfolded.has(one.track)));
          name.addEventListener("click", () => { row = index; fold(); });
        } else name.tabIndex = -1;
      });
      names.style.height = `${RULER + rows.length * ROW}px`;
      later();
    };
    const fold = () => {
      const track = rows[row].track;
      if (!track || !track.streams.length) return;
      if (!unfolded.delete(track)) unfolded.add(track);
      while (row > 0 && rows[row].track === track && rows[row].stream) row -= 1;
      span = -1;
      layOut();
      say();
    };

    // -- the picture --
    const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    let palette = {};
    const repaint = () => {
      palette = { ink: colour("--ink"), soft: colour("--soft"), line: colour("--line"), paper: colour("--paper"),
        path: colour("--path"), mark: colour("--mark") };
      for (const kind of kinds) palette[`kind ${kind}`] = colour(COLOURS[kind] || "--comm");
      for (const key of legend.querySelectorAll("canvas")) {
        const pen = key.getContext("2d");
        pen.fillStyle = palette[`kind ${key.dataset.kind}`];
        pen.fillRect(0, 0, 12, 12);
        pen.strokeStyle = palette.line;
        pen.strokeRect(0.5, 0.5, 11, 11);
      }
      later();
    };
    const first = (lane, time) => {
      let low = 0, high = lane.end.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.start[middle] <= time) low = middle + 1; else high = middle;
      }
      return Math.max(0, low - 1);
    };
    const paint = () => {
      pending = 0;
      const width = room.clientWidth, left = gutter();
      const whole = RULER + rows.length * ROW;
      const limit = printing ? whole : Math.min(whole, Math.round(window.innerHeight * 0.7));
      const scale = window.devicePixelRatio || 1;
      canvas.style.height = `${limit}px`;
      names.style.marginTop = "0";
      if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(limit * scale)) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(limit * scale);
      }
      const pen = canvas.getContext("2d"), top = printing ? 0 : room.scrollTop;
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, width, limit);
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      const per = (width - left) / (to - from);
      const x = time => left + (time - from) * per;
      const begin = Math.max(0, Math.floor((top - RULER) / ROW));
      const end = Math.min(rows.length, Math.ceil((top + limit - RULER) / ROW));
      for (let index = begin; index < end; index += 1) {
        const { run, track, lane, stream } = rows[index], y = RULER + index * ROW - top;
        if (!lane) continue;
        const tall = stream ? ROW - 8 : ROW - 4, at = y + (ROW - tall) / 2;
        // What is narrower than a pixel shares one, which has the colour of the kind that has most of it.
        let pixel = -1, shares = new Map();
        const flush = () => {
          let most = 0, kind = null;
          for (const [one, ns] of shares) if (ns > most) [kind, most] = [one, ns];
          if (kind !== null) {
            pen.fillStyle = palette[`kind ${kind}`];
            pen.fillRect(pixel, at, 1, tall);
          }
          shares = new Map();
        };
        const fills = lane.fills;
        for (let one = first(fills, from); one < fills.start.length && fills.start[one] < to; one += 1) {
          if (fills.end[one] <= from) continue;
          const a = Math.max(left, x(fills.start[one])), b = Math.min(width, x(fills.end[one]));
          const wide = b - a, kind = kinds[fills.kind[one]];
          if (wide < 1) {
            const place = Math.floor((a + b) / 2);
            if (place !== pixel) flush();
            pixel = place;
            shares.set(kind, (shares.get(kind) || 0) + fills.end[one] - fills.start[one]);
            continue;
          }
          pen.fillStyle = palette[`kind ${kind}`];
          pen.fillRect(a, at, Math.max(wide - (wide > 4 ? 1 : 0), 1), tall);
        }
        flush();
        for (let one = first(lane, from); one < lane.start.length && lane.start[one] < to; one += 1) {
          const a = Math.max(left, x(lane.start[one])), b = Math.min(width, x(lane.end[one]));
          const wide = b - a, kind = kinds[lane.kind[one]];
          if (wide > 34) {
            const words = NAMELESS.has(kind) ? kind : strings[lane.name[one]] || KIND_WORDS[kind] || kind;
            pen.save();
            pen.beginPath();
            pen.rect(a, at, wide - 4, tall);
            pen.clip();
            pen.fillStyle = LIGHT_TEXT.has(kind) ? "#fff" : palette.ink;
            pen.fillText(words, a + 4, at + tall / 2 + 1);
            pen.restore();
          }
          if (index === row && one === span) {
            pen.strokeStyle = palette.mark;
            pen.lineWidth = 2;
            pen.strokeRect(a + 1, at + 1, Math.max(wide - 2, 2), tall - 2);
          }
        }
        if (paths && !stream && run.path && run.path.of.has(track.number)) {
          pen.fillStyle = palette.path;
          let before = -9;
          for (const segment of run.path.of.get(track.number)) {
            const start = run.path.start[segment], stop = start + run.path.length[segment];
            if (stop < from || start > to) continue;
            const a = Math.max(left, x(start)), b = Math.min(width, x(stop));
            if (b - before < 0.7) continue;
            pen.fillRect(a, y + ROW - 2, Math.max(b - a, 0.7), 2);
            before = b;
          }
        }
        if (stop_of(run) < to) {
          pen.fillStyle = palette.line;
          pen.fillRect(x(stop_of(run)), y, 1, ROW);
        }
      }
      // The ruler lies over the rows that scroll below it.
      pen.fillStyle = palette.paper;
      pen.fillRect(0, 0, width, RULER);
      pen.fillStyle = palette.soft;
      const rough = (to - from) / Math.max(2, (width - left) / 110);
      const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
      const step = Math.max(1, [1, 2, 5, 10].map(one => one * power).find(one => one >= rough));
      if (runs[0].timed) for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
        pen.fillRect(x(time), RULER - 6, 1, 6);
        pen.fillText(time === 0 ? "0" : duration(Math.round(time)), Math.min(x(time) + 3, width - 60), RULER / 2);
      }
      pen.fillStyle = palette.line;
      pen.fillRect(0, RULER - 1, width, 1);
    };
    const stop_of = run => run.length;
    const later = () => {
      if (!pending) pending = requestAnimationFrame(paint);
    };

    // -- where one looks --
    const look = (start, stop) => {
      const wide = Math.min(length, Math.max(stop - start, 10));
      from = Math.min(Math.max(0, start), length - wide);
      to = from + wide;
      range.textContent = runs[0].timed ? `${duration(Math.round(from))} to ${duration(Math.round(to))}` : "";
      later();
    };
    const zoom = (factor, at = (from + to) / 2) => look(at - (at - from) * factor, at + (to - at) * factor);
    const pan = share => look(from + (to - from) * share, to + (to - from) * share);
    const show = (lane, index) => {
      const [a, b] = [lane.start[index], lane.end[index]];
      if (a < from || b > to) {
        const wide = Math.max(to - from, (b - a) * 1.2);
        look((a + b - wide) / 2, (a + b + wide) / 2);
      }
      const y = RULER + row * ROW;
      if (y < room.scrollTop + RULER) room.scrollTop = y - RULER;
      else if (y + ROW > room.scrollTop + room.clientHeight) room.scrollTop = y + ROW - room.clientHeight;
      later();
    };

    // -- what is said of a span --
    const cause = () => {
      const { run, lane } = rows[row];
      if (!lane || span < 0 || lane.cause[span] < 0) return;
      const track = run.byNumber.get(lane.to_track[span]);
      if (!track) return;
      const stream = lane.to_stream[span], start = lane.to_start[span];
      if (stream >= 0 && track.streams.length && !unfolded.has(track)) {
        unfolded.add(track);
        layOut();
      }
      const target = stream >= 0 ? track.streams.find(one => one.stream === stream) || track.lane : track.lane;
      row = rows.findIndex(one => one.lane === target);
      if (row < 0) row = rows.findIndex(one => one.track === track);
      span = first(rows[row].lane, start);
      show(rows[row].lane, span);
      say();
    };
    const say = () => {
      fact.replaceChildren();
      const { run, track, lane, title } = rows[row] || {};
      if (!lane || span < 0) {
        make("p", fact, track
          ? `${whose(title, track.ranks)}. Click a span, or use the arrow keys, to read what it is and what ` +
            "it waited for; drag to pan, Ctrl and the wheel to zoom; click a name for its streams."
          : "Click a span to read what it is and what it waited for.", "sub");
        return;
      }
      make("p", fact, strings[lane.what[span]] || kinds[lane.kind[span]], "what").style.fontWeight = "600";
      if (run.timed) {
        make("p", fact, `${exact(lane.start[span])} to ${exact(lane.end[span])}, takes ` +
          `${duration(lane.length[span])} (${exact(lane.length[span])}); ${whose(track.title, track.ranks)}`);
      }
      const more = strings[lane.more[span]];
      if (more) make("p", fact, more, "sub");
      if (lane.cause[span] >= 0) {
        const line = make("p", fact, "It waited for: ");
        line.append(strings[lane.cause[span]], " ");
        if (run.byNumber.has(lane.to_track[span])) {
          const go = make("button", line, "go there");
          go.type = "button";
          go.addEventListener("click", () => { cause(); canvas.focus(); });
        }
      }
    };
    const choose = (index, time) => {
      row = index;
      const lane = rows[row].lane;
      span = -1;
      if (lane && lane.start.length) {
        const found = first(lane, time);
        if (lane.start[found] <= time && time < lane.end[found]) span = found;
      }
      later();
      say();
    };
    const stepBy = by => {
      const lane = rows[row].lane;
      if (!lane || !lane.start.length) return;
      span = span < 0 ? first(lane, from) : Math.min(Math.max(0, span + by), lane.start.length - 1);
      show(lane, span);
      say();
    };
    const lanesBy = by => {
      const lane = rows[row].lane;
      const time = lane && span >= 0 ? (lane.start[span] + lane.end[span]) / 2 : (from + to) / 2;
      let next = row + by;
      while (rows[next] && !rows[next].lane) next += by;
      if (!rows[next]) return;
      choose(next, time);
      if (span >= 0) show(rows[row].lane, span);
    };

    // -- keys and the mouse --
    const keys = {
      ArrowLeft: () => stepBy(-1), ArrowRight: () => stepBy(1), ArrowUp: () => lanesBy(-1),
      ArrowDown: () => lanesBy(1), Enter: fold, " ": fold, "+": () => zoom(0.5), "=": () => zoom(0.5),
      w: () => zoom(0.5), "-": () => zoom(2), s: () => zoom(2), a: () => pan(-0.3), d: () => pan(0.3),
      0: () => look(0, length), f: () => look(0, length), "[": cause,
      Escape: () => { span = -1; later(); say(); },
    };
    canvas.addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    const place = event => {
      const box = canvas.getBoundingClientRect();
      const left = gutter(), y = event.clientY - box.top + room.scrollTop;
      return {
        time: from + (event.clientX - box.left - left) / (box.width - left) * (to - from),
        index: Math.floor((y - RULER) / ROW),
      };
    };
    let drag = null;
    canvas.addEventListener("pointerdown", event => {
      drag = { x: event.clientX, from, to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      if (!drag) return;
      const by = event.clientX - drag.x;
      if (Math.abs(by) > 4) drag.moved = true;
      if (!drag.moved) return;
      const share = -by / (canvas.clientWidth - gutter()) * (drag.to - drag.from);
      look(drag.from + share, drag.to + share);
    });
    canvas.addEventListener("pointerup", event => {
      if (drag && !drag.moved) {
        const { time, index } = place(event);
        if (rows[index]) choose(index, time);
      }
      drag = null;
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("dblclick", event => zoom(0.25, place(event).time));
    canvas.addEventListener("wheel", event => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event).time);
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        pan((event.deltaX || event.deltaY) / 800);
      }
    }, { passive: false });

    button("+", "zoom in (+)", () => zoom(0.5));
    button("\u2212", "zoom out (-)", () => zoom(2));
    button("\u2190", "pan left (a)", () => pan(-0.3));
    button("\u2192", "pan right (d)", () => pan(0.3));
    button("whole step", "all of the axis (0)", () => look(0, length));
    if (runs.some(run => run.tracks.some(track => track.streams.length))) {
      const every = button("unfold all lanes", "the streams of all lanes", () => {
        const folded = unfolded.size === 0;
        unfolded.clear();
        if (folded) for (const run of runs) for (const track of run.tracks) unfolded.add(track);
        every.textContent = folded ? "fold all lanes" : "unfold all lanes";
        row = 0;
        span = -1;
        layOut();
        say();
      });
    }
    if (runs.some(run => run.path && run.path.start.length)) {
      const path = button("hide the critical path", "the red line under the spans", () => {
        paths = !paths;
        path.textContent = `${paths ? "hide" : "show"} the critical path`;
        later();
      });
    }
    const range = make("span", tools);
    room.addEventListener("scroll", later);
    new ResizeObserver(() => { room.style.setProperty("--gutter", `${gutter()}px`); later(); }).observe(room);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    const print = on => { printing = on; repaint(); cancelAnimationFrame(pending); paint(); };
    addEventListener("beforeprint", () => {
      for (const details of document.querySelectorAll("details")) {
        if (details.querySelectorAll("tr").length < 400) details.open = true;
      }
      print(true);
    });
    addEventListener("afterprint", () => print(false));

    chart.hidden = false;
    layOut();
    if (rows[row] && !rows[row].lane) row = Math.min(1, rows.length - 1);
    repaint();
    look(0, length);
    say();
    performance.mark("wltui-drawn");
  };

  if (typeof DecompressionStream === "undefined") {
    told("The timeline needs a newer browser: this one cannot unpack it. All tables are below.");
    return;
  }
  unpack(data.textContent).then(draw, error => told(`The timeline of this page cannot be read: ${error.message}`));
})();
