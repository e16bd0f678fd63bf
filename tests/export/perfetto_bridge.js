// Runs the trace processor that Perfetto's web page carries (engine_bundle.js and its wasm, in the folder that
// is given) outside a browser. Speaks its RPC protocol on stdin and stdout, each message behind its length
// (4 bytes, little endian).
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];

function sandbox() {
  const self = { location: { href: "http://localhost/" } };
  const context = vm.createContext({
    self,
    location: self.location,
    WorkerGlobalScope: function () {},
    console: { log() {}, warn() {}, error() {} },
    performance, TextDecoder, TextEncoder, crypto, setTimeout, clearTimeout, URL, queueMicrotask,
  });
  const Bytes = vm.runInContext("Uint8Array", context);
  context.XMLHttpRequest = class {
    open(_, name) {
      this.name = path.basename(name);
    }
    send() {
      this.response = new Bytes(fs.readFileSync(path.join(folder, this.name))).buffer;
    }
  };
  vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), context);
  return { self, Bytes };
}

function write(bytes) {
  let at = 0;
  while (at < bytes.length) at += fs.writeSync(1, bytes, at);
}

function read(count) {
  const buffer = Buffer.alloc(count);
  let at = 0;
  while (at < count) {
    const got = fs.readSync(0, buffer, at, count - at, null);
    if (got === 0) process.exit(0);
    at += got;
  }
  return buffer;
}

const { self, Bytes } = sandbox();
const port = {
  postMessage(bytes) {
    const head = Buffer.alloc(4);
    head.writeUInt32LE(bytes.length);
    write(head);
    write(bytes);
  },
};
self.onmessage({ data: port });
// The wasm is compiled synchronously; what waits for it runs before the next turn.
setImmediate(function next() {
  port.onmessage({ data: new Bytes(read(read(4).readUInt32LE(0))) });
  setImmediate(next);
});
