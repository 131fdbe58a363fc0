"use strict";
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];

  // Sort by the rank of a value in its column. Nulls are last in both directions.
  const sort = (column) => {
    const up = heads[column].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
    const rank = (row) => Number(row.cells[column].dataset.rank ?? (up ? Infinity : -Infinity));
    const ranks = new Map(rows.map((row) => [row, rank(row)]));
    const compare = (a, b) => (ranks.get(a) === ranks.get(b) ? 0 : ranks.get(a) - ranks.get(b));
    body.append(...[...rows].sort((a, b) => (up ? compare(a, b) : compare(b, a))));
  };
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => sort(column)));

  // Show the rows that contain every word.
  const search = table.closest("section").querySelector("input[type=search]");
  search?.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of rows) {
      const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      found += row.hidden ? 0 : 1;
    }
    search.nextElementSibling.value = words.length ? `${found} of ${rows.length} rows` : "";
  });
}
