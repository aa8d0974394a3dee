// SPDX-License-Identifier: BSD-3-Clause
// Vega comes as one file a module, each of which asks for others by name.
"use strict";
const definitions = new Map();
const modules = new Map();

function define(name, body) {
    definitions.set(name, body);
}

function require(name) {
    if (!modules.has(name)) {
        const exports = {};
        modules.set(name, exports);
        const body = definitions.get(name);
        if (body !== undefined) { // what no chart of ours uses is left out
            body.call(globalThis, exports, {exports}, require);
        }
    }
    return modules.get(name);
}
