/* Copyright (c) 2026, Forewarn maintainers
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Moving about in the map.
 */
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
    const covered = document.getElementById("detail").getBoundingClientRect().top;
    const hidden = one.element.getBoundingClientRect().bottom + 8 - covered;
    if (hidden > 0) window.scrollBy(0, hidden);
  }
}

function current() {
  return cells().find((one) => one.id === state.at);
}

// From one cell to the next: a cell that covers several places is left at its edge, and tables follow each other
function move(event) {
  if (!event.target.classList.contains("cell")) return;
  if (event.key === "Enter" || event.key === " ") return void (event.preventDefault(), openDetail());
  const panel = panels.findIndex((grid) => grid.flat().some((one) => one.element === event.target));
  const grid = panels[panel];
  const here = grid.flat().find((one) => one.element === event.target);
  const inside = spot.cell === here ? spot : { row: here.row, column: here.column };
  const to = { panel, ...next(event, grid, here, inside) };
  if (to.row === undefined) return;
  event.preventDefault();
  if (to.row < 0 || to.column < 0) to.panel -= 1;
  if (to.row >= grid.length || to.column >= grid[0].length) to.panel += 1;
  const there = panels[to.panel];
  if (!there) return;
  if (to.panel !== panel) {
    to.row = entered(to.row, grid.length, there.length);
    to.column = entered(to.column, grid[0].length, there[0].length);
  }
  const cell_ = there[to.row][to.column];
  spot = { cell: cell_, row: to.row, column: to.column };
  cell_.element.focus();
}

// Where the next table is entered: at its nearest edge, or at the same height
function entered(place, before, after) {
  if (place < 0) return after - 1;
  return place >= before ? 0 : Math.min(place, after - 1);
}

function next(event, grid, here, { row, column }) {
  switch (event.key) {
    case "ArrowRight": return { row, column: here.column + here.width };
    case "ArrowLeft": return { row, column: here.column - 1 };
    case "ArrowDown": return { row: here.row + here.height, column };
    case "ArrowUp": return { row: here.row - 1, column };
    case "Home": return { row: event.ctrlKey ? 0 : row, column: 0 };
    case "End": return { row: event.ctrlKey ? grid.length - 1 : row, column: grid[0].length - 1 };
    default: return {};
  }
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
