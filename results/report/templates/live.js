"use strict";

// Asks the server how far the campaign is, and takes over the first screen when there is more of it.
const live = document.getElementById("live");
const here = location.pathname;
const loaded = Number(live.dataset.done);
let shown = loaded;
let pause = 2000;

async function look() {
  if (!document.hidden) {
    try {
      const now = await (await fetch(`${here}/standing.json`)).json();
      const states = Object.entries(now.states).sort();
      const run = states.reduce((sum, [, count]) => sum + count, 0);
      const ended = run >= now.planned;
      pause = ended && now.shown >= now.done ? 15000 : 2000;
      const counts = states.map(([state, count]) => `${count} ${state}`).join(", ");
      live.textContent = `${run} of ${now.planned.toLocaleString("en")} ${now.planned === 1 ? "trial" : "trials"}${counts && ": "}${counts}${ended ? "" : "; running or to be continued"}`;
      if (now.shown > shown) await takeOver(now);
      if (shown > loaded) live.append(`; the first screen is of ${shown} that are valid: `, reload());
    } catch {
      live.textContent = "The server does not answer.";
      pause = 15000;
    }
  }
  setTimeout(look, pause);
}

async function takeOver(now) {
  const text = await (await fetch(here)).text();
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector(".first");
  document.querySelector(".first").replaceWith(document.adoptNode(fresh));
  shown = now.shown;
}

function reload() {
  const link = document.createElement("a");
  link.href = here;
  link.textContent = "load all of it anew";
  return link;
}

setTimeout(look, pause);
