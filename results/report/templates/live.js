"use strict";

// Asks the server how far the campaign is, and takes over the first screen when there is more of it.
const live = document.getElementById("live");
const here = location.pathname;
let shown = Number(live.dataset.done);
let pause = 2000;

async function look() {
  if (!document.hidden) {
    try {
      const now = await (await fetch(`${here}/standing.json`)).json();
      const ended = now.done >= now.planned;
      pause = ended ? 15000 : 2000;
      live.textContent = `${now.done} of ${now.planned} trials${ended ? "" : ", running or to be continued"}`;
      if (now.shown > shown) await takeOver(now);
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
  const reload = document.createElement("a");
  reload.href = here;
  reload.textContent = "load all of it anew";
  live.append("; the first screen is of ", String(shown), ": ", reload);
}

setTimeout(look, pause);
