/* Copyright (c) 2026, Forewarn maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The axes of the map: the dimensions that separate most decisions, and their values, where equal ones are one.
 */
const MOST_TABLES = 6;
const TYPE = dims.findIndex((dim) => dim.name === "event.EventType");
const NO_AXES = { rows: null, across: null, panels: null };

function withPlaces(chosen, ...more) {
  return new Map([...chosen, ...more.filter(([dim]) => dim !== null)]);
}

const without = (chosen, ...some) => new Map([...chosen].filter(([dim]) => !some.includes(dim)));

function shownPlaces(dim, chosen) {
  return allowing(chosen)(dim).filter((place) => leaves(state.drawn, withPlaces(chosen, [dim, place])).length);
}

// The values of a dimension in groups: those of a group lead to the same, whatever the other dimensions are
function alike(simple, dim, places) {
  const groups = new Map();
  for (const place of places) {
    const key = simple.made.filter(([asked]) => asked === dim)
      .map(([, parts]) => parts.findIndex(([some]) => some.includes(place))).join();
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(place);
  }
  return [...groups.values()];
}

// As alike, for an axis: intervals are one only where they follow each other; what is no interval joins those beside it,
// or the last ones
function merged(simple, dim, places) {
  if (dim === null) return [null];
  const first = (group) => group.find((place) => isInterval(dim, place)) ?? group[0];
  return alike(simple, dim, places).flatMap((group) => {
    const runs = [];
    for (const place of group.filter((one) => isInterval(dim, one))) {
      if (runs.length && runs.at(-1).at(-1) === place - 1) runs.at(-1).push(place);
      else runs.push([place]);
    }
    if (!runs.length) return [group];
    for (const place of group.filter((one) => !isInterval(dim, one))) {
      (runs.find((run) => run.some((one) => Math.abs(one - place) === 1)) ?? runs.at(-1)).push(place);
    }
    return runs;
  }).sort((one, other) => first(one) - first(other));
}

// How far some values leave open what is decided: the entropy of decisions, and of the rules that make them
function doubt(simple, given) {
  const known = new Map();
  (function walk(id) {
    if (known.has(id)) return known.get(id);
    const found = new Map();
    known.set(id, found);
    if (id >= 0) return found.set(id, 1);
    const [dim, groups] = simple.made[-1 - id];
    const there = groups.map(([places, below]) =>
      [given.has(dim) ? Number(places.includes(given.get(dim))) : places.length, below]).filter(([share]) => share);
    const all = there.reduce((sum, [share]) => sum + share, 0);
    for (const [share, below] of there) {
      for (const [key, part] of walk(below)) found.set(key, (found.get(key) ?? 0) + (part * share) / all);
    }
    return found;
  })(simple.root);
  const keys = known.get(simple.root);
  const decisions = new Map();
  for (const [key, share] of keys) {
    const category = simple.categories[key];
    decisions.set(category, (decisions.get(category) ?? 0) + share);
  }
  const entropy = (shares) => [...shares].reduce((sum, share) => sum - share * Math.log2(share), 0);
  return entropy(keys.values()) + 2 * entropy(decisions.values());
}

// The same on average, once some dimensions are known
function doubtAfter(simple, known) {
  const walk = (rest, given) => {
    if (!rest.length) return doubt(simple, given);
    const [[dim, groups], ...others] = rest;
    const all = groups.reduce((sum, group) => sum + group.length, 0);
    return groups.reduce((sum, group) => sum + (group.length / all) * walk(others, withPlaces(given, [dim, group[0]])), 0);
  };
  return walk(known, new Map());
}

// One dimension after the other, each the one that leaves least open
function axes(chosen) {
  const simple = new Simple(state.drawn, chosen, keyOf);
  if (simple.root === null) return NO_AXES;
  const open = [...simple.support()].sort((one, other) => one - other)
    .map((dim) => [dim, alike(simple, dim, shownPlaces(dim, chosen))]);
  const taken = [];
  let left = doubt(simple, new Map());
  while (taken.length < 3) {
    const better = open.filter((one) => !taken.includes(one) && (taken.length < 2 || one[1].length <= MOST_TABLES))
      .map((one) => ({ one, after: doubtAfter(simple, [...taken, one]) }))
      .filter(({ after }) => after < left - 1e-9)
      .sort((first, second) => dims[first.one[0]].opaque - dims[second.one[0]].opaque
        || Number((first.after - second.after).toFixed(9)) || first.one[1].length - second.one[1].length
        || first.one[0] - second.one[0]);
    if (!better.length) break;
    taken.push(better[0].one);
    left = better[0].after;
  }
  return placed(...taken);
}

// EventType is down, what has a scale is across; else the one with fewer values is
function placed(first, second, third) {
  if (!first) return NO_AXES;
  const scaled = ([dim, groups]) => dims[dim].values.some((_, place) => isInterval(dim, place)) && groups.length <= 8;
  const panels = third ? third[0] : null;
  if (!second) {
    const across = scaled(first) || first[1].length < 4;
    return across && first[0] !== TYPE ? { rows: null, across: first[0], panels } : { rows: first[0], across: null, panels };
  }
  const rank = (one) => [one[0] === TYPE ? 0 : 1, scaled(one) ? 1 : 0, -one[1].length];
  const order = [first, second].sort((one, other) => {
    const [mine, theirs] = [rank(one), rank(other)];
    return mine.map((each, index) => each - theirs[index]).find(Boolean) ?? 0;
  });
  return { rows: order[0][0], across: order[1][0], panels };
}

// How wide values are together, in columns; no more than an interval without an end
function widthOf(dim, places) {
  if (dim === null) return 2;
  const widths = places.map((place) => dims[dim].values[place].width ?? 0).filter(Boolean);
  if (!widths.length) return dims[dim].values.some((one) => one.width) ? 0.75 : 1;
  return Math.min(2.2, widths.reduce((sum, one) => sum + one, 0));
}

// The values of an axis in words
function axisLabel(dim, places, whole) {
  if (places.length === whole.length && whole.length > 1) return "every " + dims[dim].title;
  const found = labelsOf(dim, places);
  const rest = whole.filter((place) => !places.includes(place));
  return found.length > 5 && rest.length < 3 ? `any but ${listed(labelsOf(dim, rest))}` : listed(found);
}
