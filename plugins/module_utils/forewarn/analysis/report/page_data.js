/* Copyright (c) 2026, Forewarn maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of analysis/report/table.py, and what follows from it; and how elements are made. Texts are set as texts,
 * never as markup: they come from policies. The files are one script, in the order of page.py.
 */
const data = JSON.parse(document.getElementById("table").textContent);
const { dims, nodes, sides, views, words } = data;
const SIGNS = {
  approve: "M2.5 8.5l3.5 3.5 7.5-8",
  prepared: "M2.5 3h7M2.5 7h4M5.5 11l2.5 2.5 5.5-6",
  hold: "M5.5 3v10M10.5 3v10",
  "in-doubt": "M8 2.5v7M8 12.4v.7",
  uncovered: "M5 5.5c0-4 6-4 6 0 0 2.5-3 2-3 4.5M8 12.6v.6",
  "newly-approved": "M8 3v10M3 8h10",
  "preparation-lost": "M2.5 3h7M2.5 7h4M7 8l6 6M13 8l-6 6",
  "more-permissive": "M8 13V3.5M3.5 8L8 3.5 12.5 8",
  incomparable: "M5 13V4M2.5 6.500L5 4l2.500 2.500M11 3v9M8.500 9.500L11 12l2.500-2.500",
  "no-longer-approved": "M3 8h10",
  "preparation-added": "M2.5 3h7M2.5 7h4M10 8v6M7 11h6",
  "less-permissive": "M8 3v9.5M3.500 8L8 12.500 12.500 8",
  alike: "M2.500 9c2-5 4-3 5.500-1s3.500 4 5.500-1",
  same: "M3.500 6h9M3.500 10h9",
  mixed: "M3 13L13 3",
  none: "",
};
const CATEGORIES = [...Object.keys(words), "mixed", "none"]; // in the order of legends
const MOST_OUTCOMES = 10;
const MOST_WORDS = 3;
const narrow = matchMedia("(max-width: 60rem)");

// ``drawn`` is the view that the map shows of the one that was chosen; ``axes`` are the dimensions of rows, columns and
// tables, null if the map chooses them itself
const state = { view: views[0], drawn: views[0], axes: null, chosen: new Map(), unusual: false, at: null };

// Making elements

function make(name, options = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") element.className = value;
    else if (key === "text") element.textContent = printable(value);
    else if (value !== null) element.setAttribute(key, key.startsWith("aria-") ? printable(value) : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// What would turn text around or hide it is written out, as elsewhere in forewarn.
function printable(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (found) =>
    found === "\n" ? found : "\\u" + found.codePointAt(0).toString(16).padStart(4, "0"));
}

function icon(category) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(svg.namespaceURI, "path");
  path.setAttribute("d", SIGNS[category]);
  svg.append(path);
  return svg;
}

const word = (category) => words[category]?.[0] ?? { mixed: "it depends", none: "cannot be" }[category];
const badge = (category, text = word(category)) =>
  make("span", { class: "badge c-" + category }, icon(category), make("span", { text }));

// Walking diagrams: a reference below 0 is a node, 0 is nowhere, anything else a leaf

const visible = (view, leaf) => leaf > 0 && (state.unusual || view.leaves[leaf - 1].usual);

function everywhere(dim) {
  return dims[dim].values.map((_, place) => place);
}

function allowing(chosen) {
  return (dim) => (chosen.has(dim) ? [chosen.get(dim)].flat() : everywhere(dim));
}

function leaves(view, chosen) {
  const allowed = allowing(chosen);
  const seen = new Set();
  const found = new Set();
  (function walk(ref) {
    if (seen.has(ref)) return;
    seen.add(ref);
    if (ref >= 0) {
      if (visible(view, ref)) found.add(ref);
      return;
    }
    const [dim, children] = nodes[-1 - ref];
    for (const place of allowed(dim)) walk(children[place]);
  })(view.root);
  return [...found].sort((one, other) => one - other);
}

// The dimensions that matter to a view, whatever is chosen
function used(view) {
  const key = state.unusual ? "all" : "usual";
  view.used ??= {};
  view.used[key] ??= [...new Simple(view, new Map(), keyOf).support()].sort((one, other) => one - other);
  return view.used[key];
}

function leafAt(root, places) {
  while (root < 0) root = nodes[-1 - root][1][places[nodes[-1 - root][0]]];
  return root;
}

// The values that a class is given where nothing else is asked for: usual ones first
function preferred(dim, allowed) {
  const start = dims[dim].start;
  return start !== undefined && allowed.includes(start) ? [start, ...allowed.filter((one) => one !== start)] : allowed;
}

function exampleOf(view, chosen, wanted) {
  const allowed = allowing(chosen);
  const dead = new Set();
  const places = dims.map((_, dim) => preferred(dim, allowed(dim))[0]);
  function walk(ref) {
    if (ref >= 0) return wanted.includes(ref);
    if (dead.has(ref)) return false;
    const [dim, children] = nodes[-1 - ref];
    for (const place of preferred(dim, allowed(dim))) {
      if (walk(children[place])) {
        places[dim] = place;
        return true;
      }
    }
    dead.add(ref);
    return false;
  }
  return walk(view.root) ? places : null;
}

function phrase(dim, places, all) {
  const rest = all.filter((place) => !places.includes(place));
  if (places.length > 1 && rest.length === 1) return ["unless", oneOf(dim, rest)];
  return ["when", oneOf(dim, places)];
}

// Values in words. Intervals that follow each other are one.

for (const dim of dims) {
  for (const value of dim.values.filter((one) => one.label === undefined)) {
    value.label = span(value, value, dim.open);
    value.said = `${dim.subject} ${value.exact ? "=" : "is"} ${value.label}`;
  }
}

function span({ low, exact }, { high }, open) {
  if (exact && low[0] === high?.[0]) return low[0];
  const below = high && `${high[1] ? "up to" : "below"} ${high[0]}`;
  if (!low) return below ?? open;
  if (!high) return low[1] ? `${low[0]} or more` : `above ${low[0]}`;
  if (!low[1]) return `above ${low[0]} and ${below}`;
  return `${low[0]} to ${high[1] ? high[0] : below}`;
}

const isInterval = (dim, place) => dims[dim].values[place].width !== undefined;

// Labels of values, runs of intervals as one, and before what is none
function labelsOf(dim, places) {
  const { values, open } = dims[dim];
  const runs = [];
  for (const place of [...places].sort((one, other) => isInterval(dim, other) - isInterval(dim, one) || one - other)) {
    const last = runs.at(-1);
    if (last && last.at(-1) === place - 1 && isInterval(dim, place) && isInterval(dim, place - 1)) last.push(place);
    else runs.push([place]);
  }
  return runs.map((run) => (run.length > 1 ? span(values[run[0]], values[run.at(-1)], open) : values[run[0]].label));
}

function oneOf(dim, places) {
  const { subject, values } = dims[dim];
  const found = labelsOf(dim, places);
  if (found.length === 1 && places.length === 1) return values[places[0]].said;
  if (places.some((place) => isInterval(dim, place))) return `${subject} is ${listed(found)}`;
  const said = places.map((place) => values[place].said);
  if (!said.every((text) => text.startsWith(subject + " "))) return listed(said);
  const [first, ...others] = said.map((text) => text.slice(subject.length + 1));
  return `${subject} ${listed([first, ...others.map((text) => text.replace(/^(=|in|is) /, ""))])}`;
}

function listed(texts) {
  const last = texts.some((text) => text.includes(" or ")) ? ", or " : " or ";
  return [...texts.slice(0, -2), texts.slice(-2).join(last)].join(", ");
}

function sentence(conditions) {
  const when = conditions.filter(([kind]) => kind === "when").map(([, text]) => text).join(" and ");
  const unless = conditions.filter(([kind]) => kind === "unless").map(([, text]) => text).join(", or ");
  return [when && "when " + when, unless && "unless " + unless].filter(Boolean).join(", ");
}

// What is decided, and why

function regionAt(side, policy, places) {
  return sides[side].policies[policy].regions[leafAt(sides[side].policies[policy].root, places) - 1];
}

function reasonOf(region, places) {
  if (region.reason !== undefined) return region.reason;
  if (region.reasons) return region.reasons[region.dims.map((dim) => places[dim]).join(",")];
  return undefined;
}

function exampleCase(places) {
  if (!data.groups) return null;
  const found = JSON.parse(JSON.stringify(data.base));
  for (const group of data.groups) {
    const at = group.dims.reduce((number, dim) => number * dims[dim].values.length + places[dim], 0);
    for (const [name, value] of Object.entries(data.deltas[group.parts[at]])) {
      if (value === null || typeof value !== "object") {
        found[name] = value;
        continue;
      }
      for (const [key, one] of Object.entries(value)) {
        if (one === null) delete found[name][key];
        else found[name][key] = one;
      }
    }
  }
  return found;
}

// What tells two classes apart on the map; where nothing changes, it does not matter what is decided.
const keyOf = (leaf) =>
  leaf.category === "same" ? "same" : JSON.stringify([leaf.category, leaf.by, leaf.what, leaf.decisions]);

const keysOf = (found) => [...new Set(found.map((leaf) => keyOf(state.drawn.leaves[leaf - 1])))];

const inOrder = (one, other) => CATEGORIES.indexOf(one) - CATEGORIES.indexOf(other);

const categories = (found, view = state.drawn) =>
  [...new Set(found.map((leaf) => view.leaves[leaf - 1].category))].sort(inOrder);

const isHeld = (category) => data.holds.includes(category);

const titled = (dim, places) => `${dims[dim].title} ${listed(labelsOf(dim, places))}`;
