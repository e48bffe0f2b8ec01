/* Copyright (c) 2026, Forewarn maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What is shown of the chosen cell, the filters, and the start of it all.
 */
function describe(one) {
  for (const cell_ of document.querySelectorAll(".cell.shown")) cell_.classList.remove("shown");
  one.element.classList.add("shown");
  const detail = document.getElementById("detail");
  const close = make("button", { type: "button", class: "close", "aria-label": "Close", text: "×" });
  close.addEventListener("click", closeDetail);
  const lines = [make("div", { class: "head" }, make("h3", { text: one.labels.join(" · ") || "Every such event" }), close)];
  if (!one.found.length) {
    lines.push(make("p", { text: "The service sends no such event" + (one.chosen.size ? ", with these filters." : ".") }));
    detail.replaceChildren(...lines);
    return;
  }
  if (one.category === "mixed") {
    const simple = new Simple(state.drawn, one.chosen, (leaf) => leaf.category);
    const names = [...simple.support()].map((dim) => dims[dim].title);
    lines.push(make("p", {}, badge("mixed"), make("span", { text: ` on ${and(names)}.` })));
  }
  const outcomes = keysOf(one.found).map((key) => {
    const all = one.found.filter((leaf) => keyOf(state.drawn.leaves[leaf - 1]) === key);
    const [words, more] = new Simple(state.drawn, one.chosen, (leaf) => keyOf(leaf) === key).words(true);
    return { leaf: state.drawn.leaves[all[0] - 1], all, words, more };
  });
  outcomes.sort((first, second) => inOrder(first.leaf.category, second.leaf.category));
  outcomes.slice(0, MOST_OUTCOMES).forEach((outcome, index) =>
    lines.push(outcomeBlock(outcome, one, outcomes.length > 1, index === 0)));
  if (outcomes.length > MOST_OUTCOMES) {
    lines.push(make("p", { text: `And ${outcomes.length - MOST_OUTCOMES} more. Choose filters to see fewer.` }));
  }
  detail.replaceChildren(...lines);
  detail.scrollTop = 0;
}

const everyFree = dims.map((_, dim) => dim).filter((dim) => dims[dim].opaque);
const and = (texts) => [...texts.slice(0, -2), texts.slice(-2).join(" and ")].join(", ");

function outcomeBlock(outcome, one, several, open) {
  const { leaf, all, words, more } = outcome;
  const places = exampleOf(state.drawn, one.chosen, all);
  const block = make("section", { class: "outcome" });
  block.append(make("p", { class: "decision" }, badge(leaf.category),
    sides.length > 1 ? null : by(0, leaf.by[0])));
  if (several && words.some(Boolean)) {
    block.append(make("ul", { class: "when" }, ...words.filter(Boolean).map((text) => make("li", { text })),
      more ? make("li", { text: "or in other cases" }) : null));
  }
  if (leaf.category === "same") {
    block.append(make("p", { class: "side" }, make("b", { text: "Before and after: " }), badge(leaf.decisions[1]),
      by(1, leaf.by[1]), reason(1, leaf.by[1], places)));
  } else if (sides.length > 1) {
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
  if (!place) return make("span");
  const [policy, number] = place;
  const region = sides[side].policies[policy].regions[number];
  const name = ruleName(side, policy, number);
  if (region.number === undefined) return make("span", { text: name && ` by ${name}` });
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
  const parts = [];
  const acting = sides[0].policies.map((_, policy) => regionAt(0, policy, places))
    .filter((region) => region && region.how === "rule");
  const only = views.length > 1 && state.drawn !== views[0] && leaf.by[0]
    ? [sides[0].policies[leaf.by[0][0]].regions[leaf.by[0][1]]] : acting;
  for (const [phase, text] of [["prepare", "Prepares: "], ["recover", "Recovers: "], ["notify", "Notifies: "]]) {
    const hooks = only.flatMap((region) => region[phase] || []);
    if (hooks.length) parts.push(text + hooks.join(", "));
  }
  const limits = new Set(only.flatMap((region) => region.limit || []));
  if (limits.size) parts.push("Limit: " + [...limits].join("; "));
  const groups = only.map((region) => region.group);
  if (leaf.category === "prepared" && groups.includes("hold")) {
    parts.push("With several Resources it waits until NotBefore.");
  } else if (["approve", "prepared"].includes(leaf.category) && groups.includes("ready")) {
    parts.push("With several Resources it waits until all of them are prepared.");
  }
  return parts;
}

function doubtful(places) {
  const root = state.drawn.root;
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
  const parts = [`at ${example.now}`, ...(example.first_seen === example.now ? [] : [`first seen ${example.first_seen}`]),
    vm.length || tags.length ? `VM: ${[...vm, ...tags].join(", ")}` : "VM: nothing known", ...params];
  const details = make("details", {}, make("summary", { text: "Example event" }),
    make("pre", { tabindex: "0", text: oneLineEach(example.event) }), make("p", { class: "fact", text: parts.join("; ") }));
  details.open = open;
  return details;
}

function everyPolicy(places) {
  const lines = sides[0].policies.map((policy, index) => {
    const region = regionAt(0, index, places);
    if (!region) return null;
    return make("li", {}, badge(region.category), by(0, [index, policy.regions.indexOf(region)]));
  });
  return make("details", {}, make("summary", { text: "What each policy says of the example" }),
    make("ul", { class: "policies" }, ...lines));
}

// Filters

const AXES = [["rows", "Rows"], ["across", "Columns"], ["panels", "A table for each"]];

function choice(label, options, value, change) {
  const select_ = make("select");
  for (const [key, text] of options) select_.append(make("option", { value: key, text }));
  select_.value = value;
  select_.addEventListener("change", () => change(select_.value));
  return make("label", {}, make("span", { text: label }), select_);
}

function drawControls() {
  const focused = document.activeElement.closest("#filters label")?.firstChild.textContent;
  const fields = [];
  if (views.length > 1) {
    fields.push(choice("Show", views.map((view, index) => [String(index), view.title]), String(views.indexOf(state.view)),
      (value) => {
        state.view = views[Number(value)];
        state.axes = null;
        draw();
      }));
  }
  const names = used(state.drawn).map((dim) => [String(dim), dims[dim].title]);
  for (const [axis, label] of names.length ? AXES : []) {
    fields.push(choice(label, [["", "—"], ...names], String(drawn[axis] ?? ""), (value) => {
      const dim = value === "" ? null : Number(value);
      const others = Object.entries(drawn).map(([name, one]) => [name, one === dim ? null : one]);
      state.axes = { ...Object.fromEntries(others), [axis]: dim };
      draw();
    }));
  }
  for (const dim of used(state.drawn).filter((one) => !Object.values(drawn).includes(one))) {
    const places = everywhere(dim).filter((place) => leaves(state.drawn, new Map([[dim, place]])).length);
    if (places.length < 2) continue;
    const options = new Map([["", "any"], ...places.map((place) => [String(place), dims[dim].values[place].label])]);
    const chosen = [state.chosen.get(dim) ?? ""].flat();
    options.set(chosen.join(), options.get(chosen.join()) ?? listed(labelsOf(dim, chosen)));
    fields.push(choice(dims[dim].title, options, chosen.join(), (value) => {
      if (value === "") state.chosen.delete(dim);
      else state.chosen.set(dim, value.includes(",") ? value.split(",").map(Number) : Number(value));
      draw();
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
  fields.find((field) => field.firstChild.textContent === focused)?.querySelector("select, input").focus();
}

function draw() {
  drawMap();
  drawControls();
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
dims.forEach((dim, index) => dim.start !== undefined && state.chosen.set(index, dim.start));
document.getElementById("panels").addEventListener("keydown", move);
document.getElementById("panels").addEventListener("pointerleave", () => current() && describe(current()));
document.getElementById("detail").addEventListener("keydown", (event) => event.key === "Escape" && closeDetail());
document.documentElement.classList.add("script");
draw();
