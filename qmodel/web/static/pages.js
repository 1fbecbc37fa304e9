// Live updates, charts, and help with selecting. Everything but the charts works without this script.
"use strict";
(() => {
  const EVERY = 3000;
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ---- live updates

  const live = document.getElementById("live");
  let busy = false;
  const isLive = () => live.getAttribute("aria-pressed") === "true";
  const setLive = (on) => { live.setAttribute("aria-pressed", String(on)); try { localStorage.setItem("qmodel-live", on ? "1" : "0"); } catch { /* not kept */ } };
  const main = () => document.getElementById("main");
  const refresh = () => {
    if (document.hidden || busy || !isLive() || !main()?.hasAttribute("hx-get")) return;
    if (main().querySelector("details[open], td.pick input:checked") || main().contains(document.activeElement?.closest("input, textarea, select"))) return;
    busy = true;
    htmx.trigger(document.body, "refresh");
  };
  live.hidden = false;
  try { if (localStorage.getItem("qmodel-live") === "0") setLive(false); } catch { /* not kept */ }
  live.addEventListener("click", () => { setLive(!isLive()); refresh(); });
  const said = (text) => { live.lastChild.textContent = text; live.classList.toggle("lost", text !== "Live"); };
  document.addEventListener("htmx:after:request", () => said("Live"));
  document.addEventListener("htmx:error", () => said("Disconnected"));
  document.addEventListener("htmx:finally:request", () => { busy = false; });
  document.addEventListener("visibilitychange", refresh);
  setInterval(refresh, EVERY);

  // ---- charts

  const charts = new Map();
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const seconds = (at) => new Date(at * 1000).toISOString().slice(11, 16);
  const tall = () => (innerWidth < 640 ? 134 : 166);
  const options = (given, box) => ({
    width: box.clientWidth, height: tall(), tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    cursor: { y: false, drag: { x: false } }, padding: [8, 20, 0, 0], scales: { y: { range: (_, low, high) => [0, Math.max(high, 4)] } },
    axes: [
      { stroke: color("faint"), grid: { show: false }, ticks: { stroke: color("line"), size: 4 }, font: "11px system-ui", values: (_, ticks) => ticks.map(seconds), space: 70, size: 28 },
      { stroke: color("faint"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7] },
    ],
    series: [{ label: "UTC", value: (_, at) => at == null ? "all" : seconds(at) }].concat(given.series.map((one) => ({
      label: one.label, stroke: color(one.color), fill: one.color === "complete" ? color(one.color) + "22" : undefined, width: 1.5, points: { show: false }, value: (_, count) => (count == null ? one.values.reduce((sum, each) => sum + each, 0) : count).toLocaleString("en"),
    }))),
  });
  const draw = (box, anew) => {
    const given = JSON.parse(box.dataset.chart);
    const data = [given.x, ...given.series.map((one) => one.values)];
    const known = charts.get(box);
    if (known && !anew) { known.setData(data); return; }
    known?.destroy();
    box.replaceChildren();
    charts.set(box, new uPlot(options(given, box), data, box));
  };
  const drawn = () => {
    for (const [box, chart] of charts) if (!box.isConnected) { chart.destroy(); charts.delete(box); }
    for (const box of all("[data-chart]")) if (box.dataset.drawn !== box.dataset.chart || !charts.has(box)) draw(box, false);
  };
  addEventListener("resize", () => { for (const [box, chart] of charts) chart.setSize({ width: box.clientWidth, height: tall() }); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const box of charts.keys()) draw(box, true); });

  // ---- selecting, copying, keys

  const told = () => {
    for (const one of all("[data-chosen]")) {
      const count = all(`input[name=${one.dataset.chosen}]:checked`).length;
      one.dataset.none ??= one.textContent;
      one.textContent = count ? `With ${count} selected:` : one.dataset.none;
      for (const button of all("button", one.parentElement)) button.disabled = !count;
    }
  };
  let last = null;
  document.addEventListener("click", (event) => {
    const box = event.target;
    if (box.dataset?.all) for (const one of all(`input[name=${box.dataset.all}]`)) one.checked = box.checked;
    if (box.type === "checkbox" && !box.dataset.all && box.closest("td.pick")) {
      const boxes = all("td.pick input");
      if (event.shiftKey && last?.isConnected) {
        const [from, to] = [boxes.indexOf(last), boxes.indexOf(box)].sort((a, b) => a - b);
        for (const one of boxes.slice(from, to + 1)) one.checked = box.checked;
      }
      last = box;
    }
    if (box.dataset?.copy) {
      navigator.clipboard?.writeText(document.querySelector(box.dataset.copy).textContent.trim());
      box.textContent = "Copied";
    }
    for (const menu of all("details.menu[open]")) if (!menu.contains(box)) menu.open = false;
    told();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of all("details.menu[open]")) { menu.open = false; menu.querySelector("summary").focus(); }
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    document.querySelector(".find input").focus();
  });

  document.querySelector("body > nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  const ready = () => { drawn(); told(); for (const one of all("button.copy")) one.hidden = !navigator.clipboard; };
  document.addEventListener("htmx:after:swap", ready);
  ready();
})();
