/* Copyright (c) 2026, Forewarn maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A diagram without what nobody sees, and with dimensions only where they tell something apart.
 */
class Simple {
  constructor(view, chosen, keyOf) {
    this.allowed = allowing(chosen);
    this.keys = [];
    this.categories = []; // of each key
    this.made = []; // [dim, [[places, id], …]]
    this.known = new Map();
    this.united = new Map();
    this.built = new Map();
    this.keyOf = (leaf) => {
      if (!visible(view, leaf)) return null;
      const key = keyOf(view.leaves[leaf - 1], leaf);
      if (!this.keys.includes(key)) {
        this.keys.push(key);
        this.categories.push(view.leaves[leaf - 1].category);
      }
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
