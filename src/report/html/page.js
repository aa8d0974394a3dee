// SPDX-License-Identifier: BSD-3-Clause
// Draw each chart in its place. Expressions of a specification are interpreted,
// not compiled, so that the page needs no permission to make code.
"use strict";
const {parse} = require("vega-parser");
const {View} = require("vega-view");
const {expressionInterpreter} = require("vega-interpreter");
Object.assign(require("vega-dataflow").transforms, require("vega-transforms"),
    require("vega-view-transforms"), require("vega-encode"));

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Of each chart's place what is drawn there: the view, and the list to choose by. */
const drawn = new Map();

function complain(place, error) {
    document.body.dataset.error = String(error);
    place.textContent = "This chart could not be drawn: " + error;
}

/** Rows as they are written hold differences: of numbers to the one above, of
 *  texts that were there the index; cells that are left out are those above. */
function unpack(table) {
    const texts = [];
    const is_text = [];
    const above = table.columns.map(() => 0);
    const read = (cell, i) => {
        if (typeof cell === "string") {
            is_text[i] = true;
            above[i] = texts.push(cell) - 1;
        } else if (is_text[i]) {
            above[i] = cell ?? above[i];
        } else if (cell === null) {
            return null;
        } else {
            above[i] += cell ?? 0;
        }
        return is_text[i] ? texts[above[i]] : above[i];
    };
    table.rows = table.rows.map((row) => above.map((_, i) => read(row[i], i)));
}

/** Rows as arrays become objects with the columns' names. */
function fill(spec, data) {
    for (const [name, table] of Object.entries(data)) {
        unpack(table);
        const name_row = (row) =>
            Object.fromEntries(table.columns.map((key, i) => [key, row[i]]));
        spec.data.find((one) => one.name === name).values =
            table.rows.map(name_row);
    }
    return spec;
}

/** Letters and lines that can be read on the page's own background, or on paper. */
function theme(is_printed) {
    const style = getComputedStyle(document.body);
    const ink = is_printed ? "#000" : style.color;
    const is_dark = !is_printed && dark.matches;
    return {
        background: is_printed ? "#fff" : style.backgroundColor,
        axis: {labelColor: ink, titleColor: ink, domainColor: ink, tickColor: ink,
               gridColor: is_dark ? "#444" : "#ddd", labelOverlap: true},
        legend: {labelColor: ink, titleColor: ink},
        title: {color: ink},
    };
}

/** No wider than the page; on a narrow one what stays legible. */
function fitting_width(spec, place) {
    const padding = typeof spec.padding === "number" ? 2 * spec.padding
        : spec.padding.left + spec.padding.right;
    return Math.min(spec.width, Math.max(place.clientWidth - padding, 180));
}

function fit(place) {
    const {view, spec} = drawn.get(place);
    return view.width(fitting_width(spec, place)).runAsync();
}

/** What is chosen, in the chart and in the parts of the page that belong to it. */
function show(place) {
    const {view, list, column} = drawn.get(place);
    for (const part of document.querySelectorAll("[data-of]")) {
        part.hidden = part.dataset.of !== list.value;
    }
    return view.signal(column, list.value).runAsync();
}

/** A list of what one of a chart's columns has, the chosen one of which is a
 *  signal. */
function add_list(chart, place) {
    const {column, label, first} = chart.choice;
    const table = Object.values(chart.data)[0];
    const at = table.columns.indexOf(column);
    const values = [...new Set(table.rows.map((row) => row[at]))];
    const list = document.createElement("select");
    for (const value of values) {
        list.add(new Option(value, value));
    }
    list.value = values.includes(first) ? first : values[0];
    list.addEventListener("change", () => show(place));
    const line = document.createElement("label");
    line.append(label + " ", list);
    place.before(line);
    return list;
}

/** Once more where it was drawn before: what was chosen stays so. */
async function draw(script, is_printed) {
    const place = script.previousElementSibling;
    try {
        const chart = JSON.parse(script.textContent);
        const spec = fill(chart.spec, chart.data);
        const before = drawn.get(place);
        before?.view.finalize();
        const view = new View(parse(spec, theme(is_printed), {ast: true}), {
            expr: expressionInterpreter,
            renderer: chart.renderer,
            container: place,
            hover: true,
        });
        const list = before?.list ?? (chart.choice && add_list(chart, place));
        drawn.set(place, {view, spec, list, column: chart.choice?.column});
        if (list) {
            await show(place);
        }
        await fit(place);
    } catch (error) {
        complain(place, error);
    }
}

function draw_all(is_printed) {
    const scripts = [...document.querySelectorAll("script.chart")];
    return Promise.all(scripts.map((script) => draw(script, is_printed)));
}

/** A row with what it holds, from rows with depths. */
function grow(rows) {
    const top = {children: [], depth: -1};
    const open = [top];
    for (const row of rows) {
        const node = {row, children: [], depth: Number(row.dataset.depth || 0)};
        while (open[open.length - 1].depth >= node.depth) {
            open.pop();
        }
        open[open.length - 1].children.push(node);
        open.push(node);
    }
    return top;
}

const key = (cell) => {
    const text = cell.textContent.replace(/,/g, "").trim();
    const number = parseFloat(text);
    return Number.isNaN(number) ? text : number;
};

/** Rows within a row are sorted among themselves. */
function sort(node, column, sign) {
    const compare = (a, b) => {
        const x = key(a.row.cells[column]);
        const y = key(b.row.cells[column]);
        return typeof x === typeof y ? (x < y ? -sign : x > y ? sign : 0)
            : typeof x === "number" ? -1 : 1;
    };
    node.children.sort(compare).forEach((child) => sort(child, column, sign));
}

function place_rows(body, node) {
    for (const child of node.children) {
        body.append(child.row);
        place_rows(body, child);
    }
}

function hide(node, hidden) {
    for (const child of node.children) {
        child.row.hidden = hidden;
        hide(child, hidden || child.is_folded);
    }
}

function fold(node, button) {
    node.is_folded = !node.is_folded;
    button.textContent = node.is_folded ? "+" : "\u2212";
    button.setAttribute("aria-expanded", String(!node.is_folded));
    hide(node, node.is_folded);
}

/** A button before the name of each row that holds others. */
function make_foldable(node, column) {
    for (const child of node.children) {
        if (child.children.length > 0) {
            const button = document.createElement("button");
            button.textContent = "\u2212";
            button.setAttribute("aria-label", "fold");
            button.setAttribute("aria-expanded", "true");
            button.addEventListener("click", () => fold(child, button));
            child.row.cells[column].prepend(button);
        }
        make_foldable(child, column);
    }
}

/** Titles become buttons that sort; rows that hold others fold. */
function make_sortable(table) {
    const body = table.tBodies[0];
    const top = grow([...body.rows]);
    const tree = [...table.tHead.rows[0].cells].findIndex((c) => c.dataset.tree);
    if (tree >= 0) {
        make_foldable(top, tree);
    }
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
        const button = document.createElement("button");
        let sign = cell.classList.contains("number") ? -1 : 1;
        button.append(...cell.childNodes);
        button.addEventListener("click", () => {
            sort(top, column, sign);
            place_rows(body, top);
            for (const other of table.tHead.rows[0].cells) {
                other.removeAttribute("aria-sort");
            }
            cell.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
            sign = -sign;
        });
        cell.append(button);
    });
}

addEventListener("error", (event) => complain(document.body, event.message));
document.querySelectorAll("table").forEach(make_sortable);
addEventListener("resize", () => drawn.forEach((_, place) => fit(place)));
addEventListener("beforeprint", () => draw_all(true));
addEventListener("afterprint", () => draw_all(false));
dark.addEventListener("change", () => draw_all(false));
draw_all(false).then((all) => { document.body.dataset.charts = all.length; });
