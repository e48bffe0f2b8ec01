/* Copyright (c) 2026, Forewarn maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of analysis/table.py, and what follows from it; and how elements are made. Texts are set as texts, never as
 * markup: they come from policies. The three files are one script, in the order of page.py.
 */
const data = JSON.parse(document.getElementById("table").textContent);
const { dims, nodes, sides, views } = data;
const CATEGORIES = {
  approve: ["approve", "M2.5 8.5l3.5 3.5 7.5-8"],
  prepared: ["approve once prepared", "M2.5 3h7M2.5 7h4M5.5 11l2.5 2.5 5.5-6"],
  hold: ["hold", "M5.5 3v10M10.5 3v10"],
  failed: ["hold, in doubt", "M8 2.5v7M8 12.4v.7"],
  uncovered: ["hold, no rule applies", "M5 5.5c0-4 6-4 6 0 0 2.5-3 2-3 4.5M8 12.6v.6"],
  "more-permissive": ["more permissive", "M8 13V3.5M3.5 8L8 3.5 12.5 8"],
  incomparable: ["more and less permissive", "M5 13V4M2.5 6.500L5 4l2.500 2.500M11 3v9M8.500 9.500L11 12l2.500-2.500"],
  "less-permissive": ["less permissive", "M8 3v9.5M3.500 8L8 12.500 12.500 8"],
  alike: ["otherwise different", "M2.500 9c2-5 4-3 5.500-1s3.500 4 5.500-1"],
  same: ["no change", "M3.500 6h9M3.500 10h9"],
  mixed: ["mixed", "M3 13L13 3"],
  none: ["cannot be", ""],
};
const MOST_OUTCOMES = 10;
const MOST_WORDS = 3;
const narrow = matchMedia("(max-width: 60rem)");

const state = { view: views[0], across: null, panels: null, chosen: new Map(), unusual: false, at: null };
let panels = []; // of the map that is shown: arrays of rows of cells

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
  path.setAttribute("d", CATEGORIES[category][1]);
  svg.append(path);
  return svg;
}

const word = (category) => CATEGORIES[category][0];
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

// The same diagram without what nobody sees, and with dimensions only where they tell something apart

class Simple {
  constructor(view, chosen, keyOf) {
    this.allowed = allowing(chosen);
    this.keys = [];
    this.made = []; // [dim, [[places, id], …]]
    this.known = new Map();
    this.united = new Map();
    this.built = new Map();
    this.keyOf = (leaf) => {
      if (!visible(view, leaf)) return null;
      const key = keyOf(view.leaves[leaf - 1], leaf);
      if (!this.keys.includes(key)) this.keys.push(key);
      return this.keys.indexOf(key);
    };
    this.root = this.build(view.root);
  }

  build(ref) {
    if (ref >= 0) return this.keyOf(ref);
    if (!this.built.has(ref)) {
      const [dim, children] = nodes[-1 - ref];
      this.built.set(ref, this.node(dim, this.allowed(dim).map((place) => [place, this.build(children[place])])));
    }
    return this.built.get(ref);
  }

  node(dim, pairs) {
    const groups = [];
    for (const [place, id] of pairs) {
      if (id === null) continue;
      let group = null;
      for (const one of groups) {
        const both = this.unite(one[1], id);
        if (both !== undefined) {
          one[1] = both;
          group = one;
          break;
        }
      }
      if (group) group[0].push(place);
      else groups.push([[place], id]);
    }
    if (groups.length < 2) return groups.length ? groups[0][1] : null;
    const key = JSON.stringify([dim, groups]);
    if (!this.known.has(key)) {
      this.made.push([dim, groups]);
      this.known.set(key, -this.made.length);
    }
    return this.known.get(key);
  }

  child(id, dim, place) {
    if (id === null || id >= 0 || this.made[-1 - id][0] !== dim) return id;
    const group = this.made[-1 - id][1].find(([places]) => places.includes(place));
    return group ? group[1] : null;
  }

  // What both say where either says something; undefined if they contradict each other
  unite(one, other) {
    if (one === null || one === other) return other;
    if (other === null) return one;
    if (one >= 0 && other >= 0) return undefined;
    const key = one < other ? one + "," + other : other + "," + one;
    if (!this.united.has(key)) this.united.set(key, this.tryToUnite(one, other));
    return this.united.get(key);
  }

  tryToUnite(one, other) {
    const dim = Math.min(...[one, other].filter((id) => id < 0).map((id) => this.made[-1 - id][0]));
    const pairs = [];
    for (const place of this.allowed(dim)) {
      const both = this.unite(this.child(one, dim, place), this.child(other, dim, place));
      if (both === undefined) return undefined;
      pairs.push([place, both]);
    }
    return this.node(dim, pairs);
  }

  // The dimensions that matter
  support(id = this.root, found = new Set()) {
    if (id !== null && id < 0) {
      const [dim, groups] = this.made[-1 - id];
      found.add(dim);
      for (const group of groups) this.support(group[1], found);
    }
    return found;
  }

  // Up to so many ways to a key in words, and whether there are more
  words(key) {
    const found = [];
    let steps = 2000;
    const walk = (id, conditions) => {
      if (id === null || found.length > MOST_WORDS || steps-- < 0) return;
      if (id >= 0) {
        if (this.keys[id] === key) found.push(sentence(conditions));
        return;
      }
      const [dim, groups] = this.made[-1 - id];
      const all = groups.flatMap(([places]) => places);
      for (const [places, below] of groups) walk(below, [...conditions, phrase(dim, places, all)]);
    };
    walk(this.root, []);
    return [found.slice(0, MOST_WORDS), found.length > MOST_WORDS || steps < 0];
  }
}

function phrase(dim, places, all) {
  const rest = all.filter((place) => !places.includes(place));
  if (places.length > 1 && rest.length === 1) return ["unless", oneOf(dim, rest)];
  return ["when", oneOf(dim, places)];
}

function oneOf(dim, places) {
  const said = places.map((place) => dims[dim].values[place].said);
  const subject = dims[dim].subject + " ";
  if (said.length > 1 && said.every((text) => text.startsWith(subject))) {
    const [first, ...others] = said.map((text) => text.slice(subject.length));
    return subject + listed([first, ...others.map((text) => text.replace(/^(=|in) /, ""))]);
  }
  return listed(said);
}

const listed = (texts) => [...texts.slice(0, -2), texts.slice(-2).join(" or ")].join(", ");

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

const keyOf = (leaf) => JSON.stringify([leaf.category, leaf.by, leaf.what, leaf.decisions]);

function categories(view, found) {
  const order = Object.keys(CATEGORIES);
  const all = [...new Set(found.map((leaf) => view.leaves[leaf - 1].category))];
  return all.sort((one, other) => order.indexOf(one) - order.indexOf(other));
}
