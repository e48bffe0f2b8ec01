/* Copyright (c) 2026, Forewarn maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The map: its tables and cells, and what is said beside it.
 */
let panels = []; // of the map that is shown: grids of cells; a cell that covers several places is at each of them
let drawn = NO_AXES;
let spot = {}; // where in its cell the keyboard is

const cells = () => [...new Set(panels.flat(2))];

// The sentence that says it all, with its category and the view that shows it, where everything is one decision; else
// null
function everything() {
  const all = categories(leaves(state.view, new Map()), state.view);
  const held = all.every(isHeld);
  if (!all.length || (all.length > 1 && !held)) return null;
  const category = all.length > 1 ? "hold" : all[0];
  const some = category === "uncovered" || sides.length > 1 ? [] : deciding(held);
  const text = words[category][1] + (some.length ? ", by " + and(some.map((view) => view.title)) : "") + ".";
  return { category, text, view: some[0] ?? state.view };
}

// The policies that decide everything so, each by itself, as views
function deciding(held) {
  if (views.length === 1 || state.view !== views[0]) return [state.view];
  return views.slice(1).filter((view) => held && categories(leaves(view, new Map()), view).every(isHeld));
}

function drawMap() {
  const uniform = everything();
  state.drawn = uniform ? uniform.view : state.view;
  const wanted = uniform ? new Map() : state.chosen;
  drawn = uniform ? NO_AXES : state.axes ?? axes(wanted);
  const chosen = without(wanted, ...Object.values(drawn));
  const tables = merged(new Simple(state.drawn, chosen, keyOf), drawn.panels, shown(drawn.panels, chosen));
  const titles = used(state.drawn).filter((dim) => chosen.has(dim)).map((dim) => titled(dim, [chosen.get(dim)].flat()));
  const whole = [...(views.length > 1 ? [state.view.title] : []), ...titles].join("; ");
  document.getElementById("chosen").textContent = printable(whole && ": " + whole);
  panels = [];
  const holder = document.getElementById("panels");
  holder.replaceChildren(...tables.map((places) => table(places, chosen, uniform)).filter(Boolean));
  document.getElementById("legend").replaceChildren();
  document.getElementById("notes").replaceChildren();
  if (!panels.length) {
    holder.replaceChildren(make("p", { text: "The service sends no such events. Choose other filters." }));
    document.getElementById("detail").replaceChildren();
    return;
  }
  const all = cells();
  select(all.find((one) => one.id === state.at) || all.find((one) => one.category !== "same") || all[0], false);
  if (uniform) return;
  drawLegend(all);
  drawNotes(all, chosen);
}

const shown = (dim, chosen) => (dim === null ? [] : shownPlaces(dim, chosen));

function table(places, base, uniform) {
  const chosen = withPlaces(base, [drawn.panels, places]);
  const simple = new Simple(state.drawn, chosen, keyOf);
  if (simple.root === null) return null;
  const [rows, across] = [drawn.rows, drawn.across].map((dim) => {
    const whole = shown(dim, chosen);
    return { dim, whole, groups: merged(simple, dim, whole) };
  });
  const grid = gridOf(rows, across, chosen, uniform);
  panels.push(grid);
  const title = drawn.panels === null ? "" : titled(drawn.panels, places);
  const element = make("table", { role: "grid", "aria-label": title || "Decisions" });
  const headed = rows.groups.length > 1;
  const widths = [...(headed ? [1.7] : []), ...across.groups.map((group) => widthOf(across.dim, group ?? []))];
  const sum = widths.reduce((all, one) => all + one, 0);
  element.append(make("colgroup", {}, ...widths.map((width) => {
    const column = make("col");
    column.style.setProperty("--share", (100 * width) / sum);
    column.style.setProperty("--even", (100 * (0.92 + 0.08 * width)) / (0.92 * widths.length + 0.08 * sum));
    return column;
  })));
  if (across.groups.length > 1) element.append(head(rows, across, headed));
  element.append(make("tbody", { role: "rowgroup" }, ...grid.map((line, row) => make("tr", { role: "row" },
    headed ? make("th", { scope: "row", role: "rowheader" }, ...breakable(axisLabel(rows.dim, rows.groups[row], rows.whole)))
      : null,
    ...new Set(line.filter((one) => one.row === row).map((one) => one.element))))));
  const panel = make("div", { class: sum > 8 ? "panel wide" : "panel" },
    title ? make("h3", { text: title }) : null, make("div", { class: "scroll" }, element));
  panel.style.setProperty("--width", sum);
  panel.style.setProperty("--columns", across.groups.length);
  return panel;
}

function head(rows, across, headed) {
  const scale = across.groups.filter((group) => group.some((place) => isInterval(across.dim, place))).length > 1;
  const top = make("tr", { role: "row" },
    headed ? make("td", { role: "presentation", class: "corner" }) : null,
    make("th", { class: "axis", colspan: across.groups.length, scope: "colgroup", role: "columnheader",
      text: dims[across.dim].title + (scale ? ", wider for longer" : "") }));
  return make("thead", { role: "rowgroup" }, top, make("tr", { role: "row" },
    headed ? make("th", { class: "axis corner", scope: "col", role: "columnheader", text: dims[rows.dim].title })
      : null,
    ...across.groups.map((group) => make("th", { scope: "col", role: "columnheader" },
      ...breakable(axisLabel(across.dim, group, across.whole))))));
}

// Names such as SpotRebalanceRecommendation may break where a word begins, and rules behind what they are in; units
// do not leave their numbers
function breakable(name) {
  const kept = printable(name).replace(/(?<=\d) (?=(s|min|h|days?)\b)/g, "\u00a0");
  return kept.split(/(?=[A-Z][a-z])|(?<=[/.])(?=[a-z])/).flatMap((part_, index) => (index ? [make("wbr"), part_] : [part_]));
}

// A grid in which neighbours that are equal are one cell
function gridOf(rows, across, chosen, uniform) {
  const at = rows.groups.map((row) => across.groups.map((column) =>
    contentOf(withPlaces(chosen, [rows.dim, row], [across.dim, column]))));
  const grid = at.map((line) => line.map(() => null));
  at.forEach((line, row) => line.forEach(({ key }, column) => {
    if (grid[row][column]) return;
    const free = (down, right) => at[down]?.[right]?.key === key && !grid[down][right];
    let width = 1;
    while (free(row, column + width)) width += 1;
    let height = 1;
    while (Array.from({ length: width }, (_, index) => free(row + height, column + index)).every(Boolean)) height += 1;
    const covers = (axis, from, many) => (axis.dim === null ? null : axis.groups.slice(from, from + many).flat());
    const one = cell({ row, column, width, height }, [rows, covers(rows, row, height)],
      [across, covers(across, column, width)], chosen, uniform);
    for (let down = row; down < row + height; down += 1) grid[down].fill(one, column, column + width);
  }));
  return grid;
}

// What is decided for some choice, and a text that is the same where the same is decided for the same classes
function contentOf(chosen) {
  const found = leaves(state.drawn, chosen);
  const kinds = categories(found);
  const keys = keysOf(found);
  const category = !kinds.length ? "none" : kinds.length > 1 ? "mixed" : kinds[0];
  if (keys.length < 2) return { found, kinds, category, key: keys[0] ?? "none" };
  const { made, keys: all, root } = new Simple(state.drawn, chosen, keyOf);
  return { found, kinds, category, key: JSON.stringify([made, all, root]) };
}

function cell(place, [rows, down], [across, along], base, uniform) {
  const chosen = withPlaces(base, [rows.dim, down], [across.dim, along]);
  const { found, kinds, category } = contentOf(chosen);
  const labels = [[rows, down], [across, along]].filter(([axis]) => axis.groups.length > 1).map(([axis, places]) => {
    const text = axisLabel(axis.dim, places, axis.whole);
    return axis.dim === TYPE || text.startsWith("every ") ? text : `${dims[axis.dim].title} ${text}`;
  });
  if (drawn.panels !== null) labels.push(titled(drawn.panels, base.get(drawn.panels)));
  const element = make("td", { role: "gridcell", tabindex: "-1", rowspan: place.height, colspan: place.width,
    class: `cell${uniform ? " sentence" : ""} c-${uniform?.category ?? category}` });
  if (uniform) element.append(icon(uniform.category), make("span", { class: "word", text: uniform.text }));
  else element.append(...(kinds.length > 1 ? kinds : [category]).map((kind) => part(kind, found, category)));
  const said = [...element.querySelectorAll(".word")].map((one) => [one, one.nextElementSibling].filter(Boolean)
    .map((text) => text.textContent).join(", by "));
  element.setAttribute("aria-label", printable((labels.length ? labels.join(", ") + ": " : "") + said.join(" or ")));
  const id = JSON.stringify([down, along, base.get(drawn.panels)]);
  const one = { ...place, id, element, chosen, found, labels: uniform ? [uniform.text] : labels,
    category: uniform?.category ?? category };
  element.addEventListener("focus", () => select(one, true));
  element.addEventListener("click", () => element.focus());
  element.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && describe(one));
  return one;
}

// One decision in a cell: its sign, its word and the rules that make it
function part(kind, found, category) {
  const rules = rulesOf(found, kind);
  return make("span", { class: category === "mixed" ? "part c-" + kind : "whole" }, icon(kind),
    make("span", { class: "word", text: word(kind) }), rules ? make("span", { class: "by" }, ...breakable(rules)) : null);
}

function rulesOf(found, kind, before = "") {
  const decided = found.map((leaf) => state.drawn.leaves[leaf - 1]).filter((leaf) => leaf.category === kind);
  const regions = kind === "same" ? [] : decided.map((leaf) => leaf.by.at(-1)).filter(Boolean);
  const names = [...new Set(regions.map(([policy, region]) => ruleName(sides.length - 1, policy, region)).filter(Boolean))];
  const prepares = kind === "hold" && regions.some(([policy, region]) => sides[0].policies[policy].regions[region].prepare);
  if (!names.length) return "";
  return before + (names.length > 3 ? `${names.length} rules` : listed(names)) + (prepares ? ", which prepares" : "");
}

// The name of a rule is enough where there is one policy
function ruleName(side, policy, region) {
  const { name, regions } = sides[side].policies[policy];
  const { rule } = regions[region];
  return sides[side].policies.length === 1 ? rule ?? "" : rule ? `${name}/${rule}` : name;
}

function drawLegend(all) {
  const there = new Set([...all.map((one) => one.category), ...all.flatMap((one) => categories(one.found))]);
  document.getElementById("legend").replaceChildren(...CATEGORIES.filter((one) => there.has(one))
    .map((one) => make("li", {}, badge(one))));
}

// What the map leaves out: other values of what is chosen, and that events of several VMs may wait
function drawNotes(all, chosen) {
  const notes = elsewhere(chosen).map(({ dim, places, found }) => {
    const kinds = categories(found);
    const button = make("button", { type: "button" }, make("span", { text: titled(dim, places) + ": " }),
      ...(kinds.length === 1 ? [badge(kinds[0]), make("span", { text: rulesOf(found, kinds[0], " by ") })]
        : [make("span", { text: "show that map" })]));
    button.addEventListener("click", () => {
      state.chosen.set(dim, places.length > 1 ? places : places[0]);
      draw();
      document.querySelector("#controls > summary").focus();
    });
    return make("li", {}, button);
  });
  const waits = all.some((one) => one.found.some((leaf) => {
    const { category, by: [place] } = state.drawn.leaves[leaf - 1];
    return category === "prepared" && place && sides[0].policies[place[0]].regions[place[1]].group === "hold";
  }));
  if (waits) notes.push(make("li", { text: "Once prepared, an event of several VMs waits until NotBefore." }));
  document.getElementById("notes").replaceChildren(...notes);
}

function elsewhere(chosen) {
  const here = contentOf(chosen).key;
  return [...chosen].filter(([dim]) => used(state.drawn).includes(dim)).flatMap(([dim, taken]) => {
    const groups = new Map();
    for (const place of shownPlaces(dim, without(chosen, dim)).filter((one) => ![taken].flat().includes(one))) {
      const { found, key } = contentOf(withPlaces(chosen, [dim, place]));
      if (key === here) continue;
      if (!groups.has(key)) groups.set(key, { dim, places: [], found });
      groups.get(key).places.push(place);
    }
    return [...groups.values()];
  });
}
