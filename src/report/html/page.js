// SPDX-License-Identifier: BSD-3-Clause
// Draw each chart in its place. Expressions of a specification are interpreted,
// not compiled, so that the page needs no permission to make code.
"use strict";
const {parse} = require("vega-parser");
const {View} = require("vega-view");
const {expressionInterpreter} = require("vega-interpreter");
Object.assign(require("vega-dataflow").transforms, require("vega-transforms"),
    require("vega-view-transforms"), require("vega-encode"));

function complain(place, error) {
    document.body.dataset.error = String(error);
    place.textContent = "This chart could not be drawn: " + error;
}

/** Rows as arrays become objects with the columns' names. */
function fill(spec, data) {
    for (const [name, table] of Object.entries(data)) {
        const name_row = (row) =>
            Object.fromEntries(table.columns.map((key, i) => [key, row[i]]));
        spec.data.find((one) => one.name === name).values =
            table.rows.map(name_row);
    }
    return spec;
}

async function draw(script) {
    const place = script.previousElementSibling;
    try {
        const chart = JSON.parse(script.textContent);
        const spec = fill(chart.spec, chart.data);
        const view = new View(parse(spec, null, {ast: true}), {
            expr: expressionInterpreter,
            renderer: chart.renderer,
            container: place,
            hover: true,
        });
        await view.runAsync();
    } catch (error) {
        complain(place, error);
    }
}

addEventListener("error", (event) => complain(document.body, event.message));
Promise.all([...document.querySelectorAll("script.chart")].map(draw))
    .then((all) => { document.body.dataset.charts = all.length; });
