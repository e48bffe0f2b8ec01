/* Copyright (c) 2026, Forewarn maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The map: its axes and cells, and moving about in it.
 */
function axes(view) {
  const named = (name) => used(view).filter((index) => dims[index].name === name);
  const rest = used(view).filter((dim) => dim !== rows);
  const open = rest.filter((dim) => dims[dim].start === undefined && !dims[dim].opaque);
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
function merged(places, valueAt) {
  const columns = [];
  for (const place of places) {
    const label = place === null ? "any" : dims[state.across].values[place].label;
    const [, low, high] = /^(\d+)(?:\.\.(\d*))?$/.exec(label) || [];
    const key = low === undefined ? null : valueAt(place);
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
  const labels = used(state.view).filter((dim) => chosen.has(dim)).map((dim) =>
    `${dims[dim].title} ${dims[dim].values[chosen.get(dim)].label}`);
  const whole = [...(views.length > 1 ? [state.view.title] : []), ...labels].join("; ");
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
  const labels = [dims[rows].values[row].label];
  if (state.across !== null) labels.push(dims[state.across].title + " " + column.label);
  if (state.panels !== null) labels.push(dims[state.panels].title + " " + dims[state.panels].values[panel].label);
  const found = leaves(state.view, chosen);
  const kinds = categories(state.view, found);
  const category = !kinds.length ? "none" : kinds.length > 1 ? "mixed" : kinds[0];
  const by = category === "mixed" ? kinds.map(word).join(" or ") : rulesOf(found).join(" or ");
  const element = make("td", { role: "gridcell", tabindex: "-1", class: "cell c-" + category,
    "aria-label": labels.join(", ") + ": " + word(category) + (by && ", " + by) });
  if (category === "mixed") element.append(make("span", { class: "parts" }, ...kinds.map((one) =>
    make("span", { class: "part c-" + one }, icon(one)))));
  else element.append(icon(category), make("span", { class: "name", text: shortWord(category) }));
  const one = { id: JSON.stringify([row, column.label, panel]), element, chosen, found, category, labels };
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
