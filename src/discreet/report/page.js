// Reading a plot: the pointer, or the arrow keys, choose a point; its numbers are written below the plot.
for (const svg of document.querySelectorAll("svg[data-points]")) {
  const points = JSON.parse(svg.dataset.points);
  const cursor = svg.querySelector(".cursor");
  const reading = svg.closest("figure").querySelector(".reading");
  let chosen = -1;
  const choose = (index) => {
    chosen = Math.max(0, Math.min(points.length - 1, index));
    const [x, y, words] = points[chosen];
    cursor.setAttribute("cx", x + "%");
    cursor.setAttribute("cy", y + "%");
    cursor.style.visibility = "visible";
    reading.textContent = words;
  };
  const clear = () => {
    cursor.style.visibility = "hidden";
    reading.textContent = "";
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = (100 * (event.clientX - box.left)) / box.width;
    const far = points.map(([x]) => Math.abs(x - at));
    choose(far.indexOf(Math.min(...far)));
  });
  svg.addEventListener("pointerleave", clear);
  svg.addEventListener("blur", clear);
  svg.addEventListener("focus", () => choose(chosen));
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: points.length - 1 };
    if (event.key in moves) {
      event.preventDefault();
      choose(moves[event.key]);
    }
  });
}
