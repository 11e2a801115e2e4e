/** Lists the pages, each with the addresses that open it. */

import { html } from "./html.js";
import { OverviewPage } from "./pages/overview.js";
import { TopicPage } from "./pages/topic.js";
import { TopicsPage } from "./pages/topics.js";
import { Heading } from "./parts/words.js";

/**
 * Each entry: the segments of the address, where "*" stands for any; the title; what draws it. A
 * page about one thing is drawn anew for another one, so that nothing of the first stays.
 */
const ALL = [
  [[], () => "Overview", () => OverviewPage],
  [["topics"], () => "Topics", () => TopicsPage],
  [["topics", "*"], ([, name]) => name, () => TopicPage, ([, name]) => ({ name })],
];

function matches(pattern, path) {
  return pattern.length === path.length && pattern.every((part, index) => part === "*" || part === path[index]);
}

function choose(path) {
  const key = path.join("/");
  const found = ALL.find(([pattern]) => matches(pattern, path));
  if (!found) return { key, title: "Not found", view: () => html`<${NoPage} />` };
  const [, title, page, propsOf = () => ({})] = found;
  const view = (given) => html`<${page()} ...${given} ...${propsOf(path)} />`;
  return { key, title: title(path), view };
}

export const PAGES = { choose };

function NoPage() {
  return html`<${Heading} over="Console" title="There is no such page" />
    <p class="empty">The address may be from another version. <a href="#/">Go to the overview.</a></p>`;
}
