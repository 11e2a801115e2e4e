/** Lists the pages, each with the addresses that open it. */

import { html } from "./html.js";
import { BrokerPage } from "./pages/broker.js";
import { BrokersPage } from "./pages/brokers.js";
import { ClientsPage } from "./pages/clients.js";
import { EventsPage } from "./pages/events.js";
import { GroupPage } from "./pages/group.js";
import { GroupsPage } from "./pages/groups.js";
import { MessagesPage } from "./pages/messages.js";
import { OverviewPage } from "./pages/overview.js";
import { PipelinePage, PipelinesPage } from "./pages/pipelines.js";
import { ProducersPage } from "./pages/producers.js";
import { SecurityPage } from "./pages/security.js";
import { TopicPage } from "./pages/topic.js";
import { TopicsPage } from "./pages/topics.js";
import { TransactionsPage } from "./pages/transactions.js";
import { Heading } from "./parts/words.js";

/**
 * All pages. Each entry contains the segments of the address ("*" matches any segment), a function that
 * returns the title, the component, and optionally a function that returns the component's properties.
 */
const ALL = [
  [[], () => "Overview", OverviewPage],
  [["events"], () => "Events", EventsPage],
  [["topics"], () => "Topics", TopicsPage],
  [["topics", "*"], ([, name]) => name, TopicPage, ([, name]) => ({ name })],
  [["topics", "*", "messages"], ([, name]) => `Messages of ${name}`, MessagesPage, ([, name]) => ({ name })],
  [["groups"], () => "Groups", GroupsPage],
  [["groups", "*"], ([, id]) => id, GroupPage, ([, id]) => ({ id })],
  [["transactions"], () => "Transactions", TransactionsPage],
  [["brokers"], () => "Brokers", BrokersPage],
  [["brokers", "*"], ([, id]) => `Broker ${id}`, BrokerPage, ([, id]) => ({ id })],
  [["clients"], () => "Clients", ClientsPage],
  [["clients", "producers"], () => "Producers", ProducersPage],
  [["pipelines"], () => "Pipelines", PipelinesPage],
  [["pipelines", "*", "*"], ([, , name]) => name, PipelinePage, ([, number, name]) => ({ number, name })],
  [["security"], () => "Security", SecurityPage],
];

function matches(pattern, path) {
  return pattern.length === path.length && pattern.every((part, index) => part === "*" || part === path[index]);
}

/**
 * Returns the page for the segments of an address.
 *
 * The frame uses `key` to create a new component if the address changes, so that no state of the
 * previous page remains.
 * @param {string[]} path
 */
export function choose(path) {
  const key = path.join("/");
  const found = ALL.find(([pattern]) => matches(pattern, path));
  if (!found) return { key, title: "Not found", page: NoPage, props: {} };
  const [, title, page, propsOf = () => ({})] = found;
  return { key, title: title(path), page, props: propsOf(path) };
}

function NoPage() {
  return html`<${Heading} over="Console" title="There is no such page" />
    <p class="empty">The address may be from another version. <a href="#/">Go to the overview.</a></p>`;
}
