"""The page in a headless Chromium: it zooms, unfolds, sorts and prints, and asks nothing of any network."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.page.opened import data_of, page_of, seed, whole_page
from tests.page.test_content import HOSTILE, hostile_page

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

_BROWSER, _DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(_BROWSER is None or _DRIVER is None, reason="chromium is not installed"),
    pytest.mark.slow,
]
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip


class Browser:
    """A headless Chromium with one page open."""

    def __init__(self, folder: Path) -> None:
        assert _BROWSER is not None
        options = webdriver.ChromeOptions()
        options.binary_location = _BROWSER
        for flag in (*_FLAGS, f"--user-data-dir={folder / 'profile'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(_DRIVER))
        # The page that it begins with asks for parts of its own, as long as it is there.
        self.driver.get("about:blank")
        self.folder = folder

    def open(self, page: str, width: int = 1600, height: int = 1000, scripts: bool = True) -> None:
        """Show a page, and wait until its timeline is drawn."""
        path = self.folder / "page.html"
        path.write_text(page, encoding="utf-8")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setDeviceMetricsOverride", **size)
        self.tell("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.logs()
        self.driver.get(path.as_uri())
        if scripts and 'id="chart"' in page:
            WebDriverWait(self.driver, 30).until(lambda _: self.drawn_ms())

    def tell(self, what: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(what, values)

    def ask(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def drawn_ms(self) -> float | None:
        return self.ask("return (performance.getEntriesByName('wltui-drawn')[0] || {}).startTime")

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return str(self.ask("return document.querySelector(arguments[0]).textContent", selector))

    def key(self, *keys: str) -> None:
        """Keys that go to the timeline."""
        canvas = self.all(".room canvas")[0]
        for key in keys:
            canvas.send_keys(key)

    def logs(self) -> tuple[list[str], list[str]]:
        """(what the console has, the addresses that were asked for) since it was looked at last."""
        console = [one["message"] for one in self.driver.get_log("browser")]
        events = [json.loads(one["message"])["message"] for one in self.driver.get_log("performance")]
        asked = [
            one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"
        ]
        return console, asked

    def picture(self) -> bytes:
        return base64.b64decode(self.tell("Page.captureScreenshot")["data"])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """That of seed 002."""
    return whole_page(tmp_path_factory)


def test_a_page_asks_for_nothing_and_complains_of_nothing(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.key("+", Keys.ARROW_RIGHT, Keys.ENTER)
    console, asked = browser.logs()
    assert console == []
    assert len([one for one in asked if not one.startswith("data:")]) == 1
    assert asked[0].startswith("file://")


def test_seed_002_is_drawn_within_a_second(browser: Browser, page: str) -> None:
    # Of a processor: on a machine with other work that takes longer.
    browser.tell("Performance.enable", timeDomain="threadTicks")
    browser.open(page)
    took = {one["name"]: one["value"] for one in browser.tell("Performance.getMetrics")["metrics"]}
    browser.tell("Performance.disable")
    assert 0 < took["TaskDuration"] < 1


def test_it_zooms_and_pans_by_keys(browser: Browser, page: str) -> None:
    browser.open(page)
    whole = browser.text(".tools span")
    assert whole == "0 ns to 14.774 s"
    before = browser.picture()
    browser.key("+", "+")
    assert browser.text(".tools span") == "5.540 s to 9.234 s"
    assert browser.picture() != before
    browser.key("d")
    assert browser.text(".tools span") == "6.648 s to 10.342 s"
    browser.key("a", "0")
    assert browser.text(".tools span") == whole


def test_it_pans_by_the_mouse(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.key("+")
    before = browser.text(".tools span")
    canvas = browser.all(".room canvas")[0]
    chain = webdriver.ActionChains(browser.driver)
    chain.move_to_element_with_offset(canvas, 200, 0).click_and_hold().move_by_offset(-150, 0).release()
    chain.perform()
    assert browser.text(".tools span") != before
    assert browser.text(".tools span").split(" to ")[0] > before.split(" to ")[0]


def test_a_lane_unfolds_into_its_streams_and_folds(browser: Browser, page: str) -> None:
    browser.open(page)
    names = [one.text for one in browser.all(".name")]
    assert len(names) == 16
    browser.all(".name")[0].click()
    unfolded = [one.text.strip() for one in browser.all(".name")]
    streams = [one["title"] for one in data_of(page)["runs"][0]["tracks"][0]["streams"]]
    assert unfolded[1 : 1 + len(streams)] == streams
    assert browser.all(".name")[0].get_attribute("aria-expanded") == "true"
    browser.all(".name")[0].click()
    assert len(browser.all(".name")) == 16


def test_a_span_says_what_it_is_and_what_it_waited_for(browser: Browser, page: str) -> None:
    """By keys alone: its facts, then to its cause."""
    data = data_of(page)
    lane, strings = data["runs"][0]["tracks"][0]["lane"], data["strings"]
    browser.open(page)
    browser.key(*[Keys.ARROW_RIGHT] * 6)
    # The first key takes the span at the left edge.
    place = 5
    said = browser.text(".fact")
    assert strings[lane["what"][place]] in said
    assert f"({lane['length'][place]:,} ns)".replace(",", " ") in said
    assert f"It waited for: {strings[lane['cause'][place]]}" in said
    browser.key("[")
    target = lane["start"].index(lane["to_start"][place])
    assert strings[lane["what"][target]] in browser.text(".fact")
    browser.key(Keys.ESCAPE)
    assert "Click a span" in browser.text(".fact")


def test_a_click_says_what_lies_there(browser: Browser, page: str) -> None:
    browser.open(page)
    canvas = browser.all(".room canvas")[0]
    # Offsets count from the middle of what is to be seen of it.
    browser.ask("arguments[0].scrollIntoView({block: 'center'})", canvas)
    left = -canvas.size["width"] // 2 + 250
    top = -canvas.size["height"] // 2 + 26 + 11
    webdriver.ActionChains(browser.driver).move_to_element_with_offset(canvas, left, top).click().perform()
    assert re.search(r"forward|exposed", browser.text(".fact"))
    assert "stage 0, ranks 0-63" in browser.text(".fact")


def _column(browser: Browser, section: str, column: int) -> list[str]:
    script = (
        "return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].filter(row => !row.hidden)"
        ".map(row => row.cells[arguments[1]].textContent)"
    )
    found: list[str] = browser.ask(script, section, column)
    return found


def test_tables_sort_and_filter(browser: Browser, page: str) -> None:
    browser.open(page)
    head = next(one for one in browser.all("#layers th button") if one.text == "exposed ms")
    head.click()
    exposed = [float(cell) for cell in _column(browser, "layers", 3)]
    assert exposed == sorted(exposed, reverse=True)
    head.click()
    exposed = [float(cell) for cell in _column(browser, "layers", 3)]
    assert exposed == sorted(exposed)
    browser.all("#layers input")[0].send_keys("mlp col")
    assert _column(browser, "layers", 0) == ["mlp_column"]
    assert browser.text("#layers .count") == "1 of 15 rows"


def test_times_sort_by_what_they_are_and_not_by_their_letters(browser: Browser, page: str) -> None:
    browser.open(page)
    head = next(one for one in browser.all("#critical-path th button") if one.text == "first at")
    head.click()
    units = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    found = [float(cell.split()[0]) * units[cell.split()[1]] for cell in _column(browser, "critical-path", 2)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("width", [400, 1600])
def test_nothing_is_wider_than_the_window(browser: Browser, page: str, width: int) -> None:
    browser.open(page, width)
    assert browser.ask("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_told_apart(browser: Browser, page: str, scheme: str) -> None:
    browser.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(page)
    paper = browser.ask("return getComputedStyle(document.body).backgroundColor")
    red = int(re.findall(r"\d+", paper)[0])
    assert (red > 200) == (scheme == "light")
    browser.tell("Emulation.setEmulatedMedia", features=[])


def test_it_prints(browser: Browser, page: str) -> None:
    browser.open(page)
    printed = base64.b64decode(browser.tell("Page.printToPDF", printBackground=True)["data"])
    assert printed.startswith(b"%PDF")
    assert len(printed) > 50_000


def test_without_scripts_verdict_accounts_and_tables_are_there(browser: Browser, page: str) -> None:
    browser.open(page, scripts=False)
    text = browser.driver.find_element(By.TAG_NAME, "main").text
    browser.tell("Emulation.setScriptExecutionDisabled", value=False)
    assert "Step time 14.774 s" in text
    assert "Bubble-bound. Ranks wait 4.933 s" in text
    assert "by the script" in text
    assert "mlp_column x128 2027.093 33.794" in text
    columns = ("stage", "ranks", "compute", "tp", "dp", "pp", "bubble", "idle", "computing")
    assert " ".join(columns) in re.sub(r"\s+", " ", text)


def test_hostile_names_are_text(browser: Browser) -> None:
    browser.open(hostile_page())
    browser.key(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    console, asked = browser.logs()
    assert console == []
    assert len([one for one in asked if not one.startswith("data:")]) == 1
    assert browser.all("img") == []
    cells = "\n".join(_column(browser, "layers", 0))
    assert HOSTILE[0] in cells
    # Nothing may reorder what stands beside it.
    assert "\\u202eevil" in cells


def test_an_injected_script_does_not_run(browser: Browser, page: str) -> None:
    """The policy of the page is a second wall behind the first."""
    bad = page.replace("</main>", "<script>window.caught = 1</script><b onclick='caught=1'>x</b></main>")
    browser.open(bad)
    assert browser.ask("return window.caught === undefined")
    console, _ = browser.logs()
    assert any("Content Security Policy" in one for one in console)


def test_two_runs_stand_on_one_axis(browser: Browser) -> None:
    browser.open(page_of(seed("000", schedule="1f1b"), seed("000")))
    names = [one.text for one in browser.all(".name.run")]
    assert [name[0] for name in names] == ["A", "B"]
    assert "430.4 ms" in names[0]
    assert "--schedule 1f1b" in names[1]
    console, _ = browser.logs()
    assert console == []
