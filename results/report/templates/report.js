"use strict";

// A table is sorted by the column whose head is pressed: numbers as numbers, words as people count.
const words = new Intl.Collator("en", { numeric: true });
const SCALES = { kB: 1e3, MB: 1e6, GB: 1e9, ms: 1e-3, µs: 1e-6 }; // of units that one column mixes

function key(row, column) {
  const cell = row.cells[column];
  if (!cell.classList.contains("number")) return cell.textContent.trim();
  const written = cell.textContent.replaceAll(",", "").replace("∞", "Infinity");
  const [, unit] = /^[^a-zµ[(]*([a-zµ]+)/i.exec(cell.textContent) ?? [];
  return parseFloat(written) * (SCALES[unit] ?? 1);
}

function sort(table, head) {
  const column = head.cellIndex;
  const falling = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, key: key(row, column) }));
  rows.sort((a, b) => {
    if (a.key === b.key) return 0;
    if (Number.isNaN(a.key) || Number.isNaN(b.key)) return Number.isNaN(a.key) - Number.isNaN(b.key); // what is absent is last
    const order = typeof a.key === "number" ? a.key - b.key : words.compare(a.key, b.key);
    return falling ? -order : order;
  });
  table.tBodies[0].append(...rows.map((each) => each.row));
}

for (const head of document.querySelectorAll("table.sortable thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sort(head.closest("table"), head));
  head.append(button);
}

// A figure opens in its own size.
const dialog = document.querySelector("dialog");
for (const figure of document.querySelectorAll("figure button")) {
  figure.addEventListener("click", () => {
    dialog.replaceChildren(figure.firstElementChild.cloneNode());
    dialog.showModal();
  });
}
dialog.addEventListener("click", () => dialog.close());

// A link into what is folded opens it.
function openAddressed() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1).split("&")[0]));
  if (!target) return;
  for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
  target.scrollIntoView();
}
window.addEventListener("hashchange", openAddressed);
for (const link of document.querySelectorAll("a[href^='#']")) link.addEventListener("click", () => setTimeout(openAddressed));
openAddressed();

// Paper cannot be opened: what is folded is printed, too, but for what only a screen or a program reads.
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")].filter((each) => !each.closest(".unprinted, #explore"));
  for (const each of folded) each.open = true;
});
window.addEventListener("afterprint", () => {
  for (const each of folded) each.open = false;
});

// A command can be copied.
for (const command of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(command); // a browser that keeps its clipboard to itself
      button.textContent = "press Ctrl+C";
    }
    setTimeout(() => (button.textContent = "copy"), 2000);
  });
  const place = document.createElement("div");
  place.className = "copied";
  command.replaceWith(place);
  place.append(command, button);
}
