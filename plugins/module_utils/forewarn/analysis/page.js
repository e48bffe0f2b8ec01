/* Copyright (c) 2026, Forewarn maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Draws the table of analysis/table.py. Texts are set as texts, never as markup: they come from policies.
 */
(() => {
  "use strict";
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
      const walk = (id, told) => {
        if (id === null || found.length > MOST_WORDS || steps-- < 0) return;
        if (id >= 0) {
          if (this.keys[id] === key) found.push(sentence(told));
          return;
        }
        const [dim, groups] = this.made[-1 - id];
        const all = groups.flatMap(([places]) => places);
        for (const [places, below] of groups) walk(below, [...told, phrase(dim, places, all)]);
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

  function sentence(told) {
    const when = told.filter(([kind]) => kind === "when").map(([, text]) => text).join(" and ");
    const unless = told.filter(([kind]) => kind === "unless").map(([, text]) => text).join(", or ");
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

  // The map

  function axes(view) {
    const named = (name) => used(view).filter((index) => dims[index].name === name);
    const rest = used(view).filter((dim) => dim !== rows);
    const open = rest.filter((dim) => dims[dim].start === undefined && !dims[dim].free);
    const [first] = [...named("event.DurationInSeconds"), ...open, ...rest];
    const [second] = named("event.EventSource").filter((dim) => dim !== first);
    return { across: first ?? null, panels: second ?? null };
  }

  const rows = dims.findIndex((dim) => dim.name === "event.EventType");

  function shownPlaces(dim, chosen) {
    if (dim === null) return [null];
    return everywhere(dim).filter((place) => leaves(state.view, new Map([...chosen, [dim, place]])).length);
  }

  function withPlaces(chosen, ...more) {
    return new Map([...chosen, ...more.filter(([dim]) => dim !== null)]);
  }

  // Of two choices with the same one, the same is decided for the same reasons
  function signature(chosen) {
    const { made, keys, root } = new Simple(state.view, chosen, (leaf, number) => number);
    return JSON.stringify([made, keys, root]);
  }

  // Adjacent numbers that make no difference are one column
  function merged(places, told) {
    const columns = [];
    for (const place of places) {
      const label = place === null ? "any" : dims[state.across].values[place].label;
      const [, low, high] = /^(\d+)(?:\.\.(\d*))?$/.exec(label) || [];
      const key = low === undefined ? null : told(place);
      const last = columns.at(-1);
      if (last && key !== null && last.key === key) {
        last.places.push(place);
        last.label = `${last.low}..${high ?? low}`;
      } else columns.push({ places: place === null ? null : [place], label, low, key });
    }
    return columns;
  }

  function drawMap() {
    const holder = document.getElementById("panels");
    const chosen = new Map([...state.chosen].filter(([dim]) => dim !== state.across && dim !== state.panels));
    const down = shownPlaces(rows, chosen);
    const found = shownPlaces(state.panels, chosen);
    const across = merged(shownPlaces(state.across, chosen), (column) => down.flatMap((row) => found.map((panel) =>
      signature(withPlaces(chosen, [rows, row], [state.across, column], [state.panels, panel])))).join());
    const told = used(state.view).filter((dim) => chosen.has(dim)).map((dim) =>
      `${dims[dim].title} ${dims[dim].values[chosen.get(dim)].label}`);
    const whole = [...(views.length > 1 ? [state.view.title] : []), ...told].join("; ");
    document.getElementById("chosen").textContent = printable(whole && ": " + whole);
    panels = [];
    holder.replaceChildren();
    for (const place of found) {
      const title = place === null ? "" : dims[state.panels].title + ": " + dims[state.panels].values[place].label;
      const body = make("tbody", { role: "rowgroup" });
      const table = make("table", { role: "grid", "aria-label": title || "Decisions" },
        head(across), body);
      table.style.setProperty("--columns", across.length);
      const cells = down.map((row) => across.map((column) => cell(row, column, place, chosen)));
      cells.forEach((line, index) => body.append(make("tr", { role: "row" },
        rowHead(dims[rows].values[down[index]].label),
        ...line.map((one) => one.element))));
      panels.push(cells);
      holder.append(make("div", { class: across.length > 6 ? "panel wide" : "panel" },
        title ? make("h3", { text: title }) : null, make("div", { class: "scroll" }, table)));
    }
    if (!panels.length || !panels[0].length) {
      panels = [];
      holder.replaceChildren(make("p", { text: "The service sends no such events. Choose other filters." }));
      document.getElementById("detail").replaceChildren();
      return;
    }
    const all = panels.flat(2);
    const again = state.at && all.find((one) => one.id === state.at);
    select(again || all.find((one) => one.category !== "same") || all[0], false);
    drawLegend(all);
  }

  function rowHead(name) {
    return make("th", { scope: "row", role: "rowheader", class: name.length > 16 ? "long" : "" }, ...breakable(name));
  }

  // Names such as SpotRebalanceRecommendation may break where a word begins, and ranges before their end
  function breakable(name) {
    return printable(name).split(/(?=[A-Z][a-z])|(?<=\.\.)/).flatMap((part, index) => (index ? [make("wbr"), part] : [part]));
  }

  function head(across) {
    const names = across.map((column) => column.label);
    const top = state.across === null ? null : make("tr", { role: "row" },
      make("td", { role: "presentation" }),
      make("th", { class: "axis", colspan: across.length, text: dims[state.across].title, scope: "colgroup",
        role: "columnheader" }));
    return make("thead", { role: "rowgroup" }, top, make("tr", { role: "row" },
      make("th", { class: "axis", scope: "col", role: "columnheader", text: dims[rows].title }),
      ...names.map((text) => make("th", { scope: "col", role: "columnheader" }, ...breakable(text)))));
  }

  function cell(row, column, panel, base) {
    const chosen = withPlaces(base, [rows, row], [state.across, column.places], [state.panels, panel]);
    const told = [dims[rows].values[row].label];
    if (state.across !== null) told.push(dims[state.across].title + " " + column.label);
    if (state.panels !== null) told.push(dims[state.panels].title + " " + dims[state.panels].values[panel].label);
    const found = leaves(state.view, chosen);
    const kinds = categories(state.view, found);
    const category = !kinds.length ? "none" : kinds.length > 1 ? "mixed" : kinds[0];
    const by = category === "mixed" ? kinds.map(word).join(" or ") : rulesOf(found).join(" or ");
    const element = make("td", { role: "gridcell", tabindex: "-1", class: "cell c-" + category,
      "aria-label": told.join(", ") + ": " + word(category) + (by && ", " + by) });
    if (category === "mixed") element.append(make("span", { class: "parts" }, ...kinds.map((one) =>
      make("span", { class: "part c-" + one }, icon(one)))));
    else element.append(icon(category), make("span", { class: "name", text: shortWord(category) }));
    const one = { id: JSON.stringify([row, column.label, panel]), element, chosen, found, category, told };
    element.addEventListener("focus", () => select(one, true));
    element.addEventListener("click", () => element.focus());
    element.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && describe(one));
    return one;
  }

  const SHORT = { prepared: "prepare", failed: "in doubt", uncovered: "no rule", "more-permissive": "more",
    "less-permissive": "less", incomparable: "both", alike: "other", same: "same", none: "" };
  const shortWord = (category) => SHORT[category] ?? word(category);

  function rulesOf(found) {
    const names = found.map((leaf) => state.view.leaves[leaf - 1].by.at(-1)).filter(Boolean).map(([policy, region]) =>
      ruleName(sides.length - 1, policy, region));
    return [...new Set(names)].slice(0, 3);
  }

  function ruleName(side, policy, region) {
    const one = sides[side].policies[policy];
    return one.name + (one.regions[region].rule ? "/" + one.regions[region].rule : "");
  }

  function drawLegend(all) {
    const there = new Set(all.map((one) => one.category));
    for (const one of all.flatMap((each) => categories(state.view, each.found))) there.add(one);
    document.getElementById("legend").replaceChildren(...Object.keys(CATEGORIES).filter((one) => there.has(one))
      .map((one) => make("li", {}, badge(one))));
  }

  // Moving

  function select(one, open) {
    const before = document.querySelector(".cell[tabindex='0']");
    if (before) {
      before.setAttribute("tabindex", "-1");
      before.removeAttribute("aria-selected");
    }
    state.at = one.id;
    one.element.setAttribute("tabindex", "0");
    one.element.setAttribute("aria-selected", "true");
    if (open) document.getElementById("detail").classList.add("open");
    describe(one);
    if (open && narrow.matches) {
      const hidden = one.element.getBoundingClientRect().bottom + 8 - document.getElementById("detail").getBoundingClientRect().top;
      if (hidden > 0) window.scrollBy(0, hidden);
    }
  }

  function current() {
    return panels.flat(2).find((one) => one.id === state.at);
  }

  function move(event) {
    if (!event.target.classList.contains("cell")) return;
    let panel = panels.findIndex((rows_) => rows_.flat().some((one) => one.element === event.target));
    let row = panels[panel].findIndex((line) => line.some((one) => one.element === event.target));
    let column = panels[panel][row].findIndex((one) => one.element === event.target);
    const width = panels[panel][row].length;
    const height = panels[panel].length;
    if (event.key === "ArrowRight" && column + 1 < width) column += 1;
    else if (event.key === "ArrowRight" && panel + 1 < panels.length) [panel, column] = [panel + 1, 0];
    else if (event.key === "ArrowLeft" && column > 0) column -= 1;
    else if (event.key === "ArrowLeft" && panel > 0) [panel, column] = [panel - 1, width - 1];
    else if (event.key === "ArrowDown" && row + 1 < height) row += 1;
    else if (event.key === "ArrowUp" && row > 0) row -= 1;
    else if (event.key === "Home") [row, column] = [event.ctrlKey ? 0 : row, 0];
    else if (event.key === "End") [row, column] = [event.ctrlKey ? height - 1 : row, width - 1];
    else if (event.key === "Enter" || event.key === " ") return void (event.preventDefault(), openDetail());
    else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    panels[panel][row][column].element.focus();
  }

  function openDetail() {
    const detail = document.getElementById("detail");
    detail.classList.add("open");
    detail.focus();
  }

  function closeDetail() {
    document.getElementById("detail").classList.remove("open");
    const one = current();
    if (one) one.element.focus({ preventScroll: true });
    document.getElementById("detail").classList.remove("open");
  }

  // One cell in words

  function describe(one) {
    for (const cell_ of document.querySelectorAll(".cell.shown")) cell_.classList.remove("shown");
    one.element.classList.add("shown");
    const detail = document.getElementById("detail");
    const close = make("button", { type: "button", class: "close", "aria-label": "Close", text: "×" });
    close.addEventListener("click", closeDetail);
    const lines = [make("div", { class: "head" }, make("h3", { text: one.told.join(" · ") }), close)];
    if (!one.found.length) {
      lines.push(make("p", { text: "The service sends no such event" + (one.chosen.size ? ", with these filters." : ".") }));
      detail.replaceChildren(...lines);
      return;
    }
    if (one.category === "mixed") {
      const simple = new Simple(state.view, one.chosen, (leaf) => leaf.category);
      const names = [...simple.support()].map((dim) => dims[dim].title);
      lines.push(make("p", {}, badge("mixed"), make("span", { text: " It depends on " + and(names) + "." })));
    }
    const order = Object.keys(CATEGORIES);
    const keys = [...new Set(one.found.map((leaf) => keyOf(state.view.leaves[leaf - 1])))];
    const outcomes = keys.map((key) => {
      const all = one.found.filter((leaf) => keyOf(state.view.leaves[leaf - 1]) === key);
      const [words, more] = new Simple(state.view, one.chosen, (leaf) => keyOf(leaf) === key).words(true);
      return { leaf: state.view.leaves[all[0] - 1], all, words, more };
    });
    outcomes.sort((first, second) => order.indexOf(first.leaf.category) - order.indexOf(second.leaf.category));
    outcomes.slice(0, MOST_OUTCOMES).forEach((outcome, index) =>
      lines.push(outcomeBlock(outcome, one, outcomes.length > 1, index === 0)));
    if (outcomes.length > MOST_OUTCOMES) {
      lines.push(make("p", { text: `And ${outcomes.length - MOST_OUTCOMES} more. Choose filters to see fewer.` }));
    }
    detail.replaceChildren(...lines);
    detail.scrollTop = 0;
  }

  const everyFree = dims.map((_, dim) => dim).filter((dim) => dims[dim].free);
  const and = (texts) => [...texts.slice(0, -2), texts.slice(-2).join(" and ")].join(", ");

  function outcomeBlock(outcome, one, several, open) {
    const { leaf, all, words, more } = outcome;
    const places = exampleOf(state.view, one.chosen, all);
    const block = make("section", { class: "outcome" });
    block.append(make("p", { class: "decision" }, badge(leaf.category),
      sides.length > 1 ? null : by(0, leaf.by[0])));
    if (several && words.some(Boolean)) {
      block.append(make("ul", { class: "when" }, ...words.filter(Boolean).map((text) => make("li", { text })),
        more ? make("li", { text: "or in other cases" }) : null));
    }
    if (sides.length > 1) {
      if (leaf.what) block.append(make("p", { class: "what", text: leaf.what }));
      leaf.by.forEach((each, side) => block.append(make("p", { class: "side" },
        make("b", { text: side ? "After: " : "Before: " }), badge(leaf.decisions[side]), by(side, each),
        reason(side, each, places))));
    } else {
      block.append(reason(0, leaf.by[0], places));
      facts(leaf, places).forEach((text) => block.append(make("p", { class: "fact", text })));
    }
    if (!leaf.usual) block.append(make("p", { class: "fact", text: "The service does not send such events by its documentation." }));
    const doubts = doubtful(places);
    for (const text of doubts) block.append(make("p", { class: "fact", text: "Not understood, so it may be either: " + text }));
    const example = exampleCase(places);
    if (example) block.append(exampleBlock(example, open));
    if (sides.length === 1 && sides[0].policies.length > 1) block.append(everyPolicy(places));
    return block;
  }

  function by(side, place) {
    if (!place) return make("span", { text: " no policy has a rule for it" });
    const [policy, number] = place;
    const region = sides[side].policies[policy].regions[number];
    const name = ruleName(side, policy, number);
    if (region.number === undefined) return make("span", { text: ` by ${name}` });
    const href = `#rule-${side}-${policy}-${region.number}`;
    return make("span", { text: " by " }, make("a", { href, text: name }));
  }

  function reason(side, place, places) {
    if (!place) return make("span");
    const region = sides[side].policies[place[0]].regions[place[1]];
    const text = reasonOf(region, places);
    if (text !== undefined) return make("q", { class: "reason", text });
    return region.explanation ? make("code", { class: "reason", text: region.explanation }) : make("span");
  }

  function facts(leaf, places) {
    const told = [];
    const acting = sides[0].policies.map((_, policy) => regionAt(0, policy, places))
      .filter((region) => region && region.how === "rule");
    const only = views.length > 1 && state.view !== views[0] && leaf.by[0]
      ? [sides[0].policies[leaf.by[0][0]].regions[leaf.by[0][1]]] : acting;
    for (const [phase, text] of [["prepare", "Prepares: "], ["recover", "Recovers: "], ["notify", "Notifies: "]]) {
      const hooks = only.flatMap((region) => region[phase] || []);
      if (hooks.length) told.push(text + hooks.join(", "));
    }
    if (leaf.category === "prepared" && only.some((region) => region.group === "hold")) {
      told.push("With several Resources it waits until NotBefore.");
    }
    return told;
  }

  function doubtful(places) {
    const root = state.view.root;
    return everyFree.filter((dim) => {
      const found = everywhere(dim).map((place) => leafAt(root, places.map((one, at) => (at === dim ? place : one))));
      return new Set(found).size > 1;
    }).map((dim) => dims[dim].title);
  }

  function oneLineEach(event) {
    return "{\n" + Object.entries(event).map(([name, value]) =>
      ` ${JSON.stringify(name)}: ${JSON.stringify(value).replaceAll('","', '", "')}`).join(",\n") + "\n}";
  }

  function exampleBlock(example, open) {
    const vm = Object.entries(example.vm).filter(([name]) => name !== "tags").map(([name, value]) => `${name} ${value}`);
    const tags = Object.entries(example.vm.tags || {}).map(([name, value]) => `tag ${name}=${value}`);
    const params = Object.entries(example.params).map(([name, value]) => `params.${name}=${JSON.stringify(value)}`);
    const told = [`at ${example.now}`, ...(example.first_seen === example.now ? [] : [`first seen ${example.first_seen}`]),
      vm.length || tags.length ? `VM: ${[...vm, ...tags].join(", ")}` : "VM: nothing known", ...params];
    const details = make("details", {}, make("summary", { text: "Example event" }),
      make("pre", { tabindex: "0", text: oneLineEach(example.event) }), make("p", { class: "fact", text: told.join("; ") }));
    details.open = open;
    return details;
  }

  function everyPolicy(places) {
    const lines = sides[0].policies.map((policy, index) => {
      const region = regionAt(0, index, places);
      if (!region) return null;
      const how = region.output === "abstain" ? "uncovered"
        : region.output === "approve" ? (region.prepare ? "prepared" : "approve") : region.how === "rule" ? "hold" : "failed";
      return make("li", {}, badge(how, region.output), by(0, [index, policy.regions.indexOf(region)]));
    });
    return make("details", {}, make("summary", { text: "What each policy says of the example" }),
      make("ul", { class: "policies" }, ...lines));
  }

  // Filters

  function choice(label, options, value, change) {
    const select_ = make("select");
    for (const [key, text] of options) select_.append(make("option", { value: key, text }));
    select_.value = value;
    select_.addEventListener("change", () => change(select_.value));
    return make("label", {}, make("span", { text: label }), select_);
  }

  function drawControls() {
    const choosable = used(state.view).filter((dim) => dim !== rows);
    const names = choosable.map((dim) => [String(dim), dims[dim].title]);
    const fields = [];
    if (views.length > 1) {
      fields.push(choice("Show", views.map((view, index) => [String(index), view.title]), String(views.indexOf(state.view)),
        (value) => {
          state.view = views[Number(value)];
          Object.assign(state, axes(state.view));
          draw();
        }));
    }
    if (names.length) {
      const number = (value) => (value === "" ? null : Number(value));
      fields.push(choice("Columns", [["", "—"], ...names], String(state.across ?? ""), (value) => {
        state.across = number(value);
        if (state.panels === state.across) state.panels = null;
        draw();
      }));
      fields.push(choice("A table for each", [["", "—"], ...names], String(state.panels ?? ""), (value) => {
        state.panels = number(value);
        if (state.panels === state.across) state.across = null;
        draw();
      }));
    }
    for (const dim of choosable) {
      if (dim === state.across || dim === state.panels) continue;
      const places = everywhere(dim).filter((place) => leaves(state.view, new Map([[dim, place]])).length);
      const options = [["", "any"], ...places.map((place) => [String(place), dims[dim].values[place].label])];
      if (places.length < 2) continue;
      fields.push(choice(dims[dim].title, options, String(state.chosen.get(dim) ?? ""), (value) => {
        if (value === "") state.chosen.delete(dim);
        else state.chosen.set(dim, Number(value));
        drawMap();
      }));
    }
    const box = make("input", { type: "checkbox", id: "unusual" });
    box.checked = state.unusual;
    box.addEventListener("change", () => {
      state.unusual = box.checked;
      draw();
    });
    fields.push(make("label", { class: "check" }, box,
      make("span", { text: "with events that the service does not send by its documentation" })));
    document.getElementById("filters").replaceChildren(...fields);
  }

  function draw() {
    drawControls();
    drawMap();
  }

  // A link to a rule opens the list that the rule is in
  function reveal() {
    const target = document.getElementById(location.hash.slice(1));
    const list = target && target.closest("details");
    if (!list || list.open) return;
    list.open = true;
    target.scrollIntoView();
  }

  window.addEventListener("hashchange", reveal);
  reveal();
  document.getElementById("controls").open = !narrow.matches;
  dims.forEach((dim, index) => dim.start !== undefined && state.chosen.set(index, dim.start));
  Object.assign(state, axes(state.view));
  document.getElementById("panels").addEventListener("keydown", move);
  document.getElementById("panels").addEventListener("pointerleave", () => current() && describe(current()));
  document.getElementById("detail").addEventListener("keydown", (event) => event.key === "Escape" && closeDetail());
  document.documentElement.classList.add("script");
  draw();
})();
