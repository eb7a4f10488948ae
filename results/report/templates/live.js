"use strict";

// Asks the server how far the campaign is, and takes over the first screen when there is another one.
const live = document.getElementById("live");
const here = location.pathname;
let { done: shown, page } = live.dataset;
let isOlder = false; // what is below the first screen
let pause = 2000;

class Refused extends Error {}

async function get(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Refused(await answer.text());
  return answer;
}

async function look() {
  if (!document.hidden) {
    try {
      const now = await (await get(`${here}/standing.json`)).json();
      const states = Object.entries(now.states).sort();
      const run = states.reduce((sum, [, count]) => sum + count, 0);
      pause = now.ended && now.shown >= now.done ? 15000 : 2000;
      if (now.page !== page) await takeOver();
      const counts = states.map(([state, count]) => `${count.toLocaleString("en")} ${state}`).join(", ");
      const goesOn = now.ended ? "" : "; running or to be continued";
      const planned = `${now.planned.toLocaleString("en")} ${now.planned === 1 ? "trial" : "trials"}`;
      live.textContent = `${run.toLocaleString("en")} of ${planned}${counts && ": "}${counts}${goesOn}`;
      if (isOlder) live.append(`; the first screen is of ${shown} that are valid: `, reload());
    } catch (problem) {
      live.textContent = problem instanceof Refused ? problem.message : "The server does not answer.";
      pause = 15000;
    }
  }
  setTimeout(look, pause);
}

async function takeOver() {
  const text = await (await get(here)).text();
  const fresh = new DOMParser().parseFromString(text, "text/html");
  ({ done: shown, page } = fresh.getElementById("live").dataset); // it may be newer than what the server said
  const [first, before] = [fresh, document].map((one) => one.querySelector(".first"));
  if (first.textContent === before.textContent) return;
  before.replaceWith(document.adoptNode(first));
  isOlder = true;
}

function reload() {
  const link = document.createElement("a");
  link.href = here;
  link.textContent = "load all of it anew";
  return link;
}

setTimeout(look, pause);
