// Draws the figures, and keeps those of a group on the shape that is selected. `vegaEmbed` comes before this.
// The promise tells when all is drawn, and how many milliseconds that took since the page began to load.
window.drawn = (async () => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const rows = read("data");
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  // Level 1: errors. Vega warns of a layer without rows, which only means that nothing there has a floor, say.
  const options = {mode: "vega", renderer: "svg", actions: false, logLevel: 1, tooltip: {theme: dark ? "dark" : "light"}};
  const drawn = Object.entries(read("specifications")).map(async ([id, specification]) => {
    for (const data of specification.data)
      if (data.name in rows) data.values = rows[data.name].map((row) => ({...row}));  // Vega adds to its rows
    const {view} = await vegaEmbed(document.getElementById(id), specification, options);
    return [id, view];
  });
  const views = await Promise.all(drawn);
  for (const selector of document.querySelectorAll("select[data-group]"))
    selector.addEventListener("change", () => {
      const group = document.getElementById(selector.dataset.group);
      for (const [id, view] of views)
        if (group.contains(document.getElementById(id))) view.signal("shape", selector.value).runAsync();
    });
  return performance.now();
})();
