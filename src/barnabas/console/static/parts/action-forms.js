/** Describes the form of each action: its fields, and the JSON into which they are converted. */

import { link } from "../router.js";

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {"text" | "number" | "choice" | "lines" | "content"} kind
 * @property {string} [help]
 * @property {boolean} [isNeeded]
 * @property {[value: string, label: string][]} [choices]
 * @property {(values: object) => boolean} [isShown] if missing, the field is always shown
 */

/** Thrown if the input cannot be sent; the message explains why. */
export class BadField extends Error {}

/** @param {string} text @param {string} label @returns {number | null} */
function whole(text, label) {
  const given = text.trim();
  if (!given) return null;
  const number = Number(given);
  if (!/^[+-]?\d+$/.test(given)) throw new BadField(`${label}: give a whole number, not “${given}”.`);
  // The browser would round a larger number.
  if (!Number.isSafeInteger(number)) throw new BadField(`${label}: this number is too large for this page; use the command line.`);
  return number;
}

/** @param {string} text @returns {string[]} the lines that are not empty */
const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** Splits lines such as "name=value". @param {string} text @param {string} mark @param {string} label */
function pairs(text, mark, label) {
  return linesOf(text).map((line) => {
    const at = line.indexOf(mark);
    if (at < 1) throw new BadField(`${label}: “${line}” is not a name and a value, such as name${mark}value.`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
}

function configs(text, label) {
  const found = pairs(text, "=", label);
  if (new Set(found.map(([name]) => name)).size < found.length) throw new BadField(`${label}: a config is listed twice.`);
  return Object.fromEntries(found);
}

/** @param {string} text such as "1, 2" @param {string} label @returns {number[]} */
function brokerIds(text, label) {
  if (!text.trim()) return [];
  return text.split(",").map((each) => {
    const id = whole(each, label);
    if (id == null) throw new BadField(`${label}: “${text.trim()}” is not a list of broker ids, such as 1,2.`);
    return id;
  });
}

/** @param {string} text lines such as "0: 1,2" @param {string} label */
function replicasOf(text, label) {
  return pairs(text, ":", label).map(([partition, brokers]) => ({
    partition: whole(partition, `${label}, partition`),
    brokers: brokerIds(brokers, `${label} of partition ${partition}`),
  }));
}

const content = (form, text) => (form === "null" ? { form } : { form, text });

const CONTENT_FORMS = [
  ["text", "text"],
  ["hex", "hexadecimal digits"],
  ["base64", "base64"],
  ["null", "null"],
];

const CONFIG_FIELDS = [
  { name: "set", label: "Set", kind: "lines", help: "One config on each line, such as retention.ms=86400000" },
  { name: "delete", label: "Back to the default", kind: "lines", help: "The names of configs, one on each line" },
];

/** @param {(given: object) => object} where identifies the topic or broker */
function configBody(values, where) {
  return { ...where, set: configs(values.set, "Set"), delete: linesOf(values.delete) };
}

/** @type {Record<string, {button: string, title: (given: object) => string, fields: Field[],
 *    start?: object, isDangerous?: boolean, body: (values: object, given: object) => object,
 *    address?: (values: object, given: object) => string}>} */
export const FORMS = {
  "create-topic": {
    button: "Create a topic",
    title: () => "Create a topic",
    fields: [
      { name: "topic", label: "Name", kind: "text", isNeeded: true },
      { name: "partitions", label: "Partitions", kind: "number", help: "Empty: the brokers' default" },
      { name: "replicas", label: "Replication factor", kind: "number", help: "Empty: the brokers' default" },
      { name: "configs", label: "Configs", kind: "lines", help: "One on each line, such as retention.ms=86400000" },
    ],
    body: (values) => ({
      topic: values.topic.trim(),
      partitions: whole(values.partitions, "Partitions"),
      replication_factor: whole(values.replicas, "Replication factor"),
      configs: configs(values.configs, "Configs"),
    }),
    address: (values) => link(["topics"], { search: values.topic.trim() }),
  },
  "add-partitions": {
    button: "Add partitions",
    title: ({ topic }) => `Add partitions to ${topic}`,
    fields: [{ name: "partitions", label: "New total", kind: "number", isNeeded: true }],
    body: (values, { topic }) => ({ topic, partitions: whole(values.partitions, "New total") }),
  },
  "alter-configs": {
    button: "Change configs",
    title: ({ of, topic, broker }) => `Change configs of ${of === "topic" ? topic : of === "broker" ? `broker ${broker}` : of}`,
    fields: CONFIG_FIELDS,
    body: configBody,
  },
  "delete-topic": {
    button: "Delete the topic",
    isDangerous: true,
    title: ({ topic }) => `Delete ${topic}`,
    fields: [{ name: "confirm", label: "Type the name of the topic", kind: "text", isNeeded: true }],
    body: (values, { topic }) => ({ topic, confirm: values.confirm.trim() }),
    address: () => "#/topics",
  },
  "delete-records": {
    button: "Delete records",
    isDangerous: true,
    title: ({ topic }) => `Delete records of ${topic}`,
    fields: [
      { name: "partition", label: "Partition", kind: "number", help: "Empty: all partitions" },
      { name: "before", label: "First offset to keep", kind: "number", help: "Empty: all records are deleted" },
      { name: "confirm", label: "Type the name of the topic", kind: "text", isNeeded: true },
    ],
    body: (values, { topic }) => ({
      topic,
      confirm: values.confirm.trim(),
      partition: whole(values.partition, "Partition"),
      before: whole(values.before, "First offset to keep"),
    }),
  },
  "elect-leaders": {
    button: "Elect preferred leaders",
    title: ({ of, topic }) => `Elect preferred leaders of ${of === "topic" ? topic : of}`,
    fields: [],
    body: (values, given) => given,
  },
  "reassign-partitions": {
    button: "Reassign partitions",
    title: ({ topic }) => `Reassign partitions of ${topic}`,
    start: { how: "spread" },
    fields: [
      {
        name: "how",
        label: "New replicas",
        kind: "choice",
        choices: [
          ["spread", "spread over these brokers"],
          ["typed", "as listed for each partition"],
        ],
      },
      { name: "brokers", label: "Brokers", kind: "text", help: "Their ids, such as 1,2,3", isNeeded: true, isShown: ({ how }) => how === "spread" },
      { name: "partition", label: "Partition", kind: "number", help: "Empty: all partitions", isShown: ({ how }) => how === "spread" },
      {
        name: "replicas",
        label: "Replicas",
        kind: "lines",
        help: "One partition on each line, such as 0: 1,2. The first broker is the preferred leader.",
        isNeeded: true,
        isShown: ({ how }) => how === "typed",
      },
      { name: "rate", label: "Throttle in bytes per second", kind: "number", help: "For each broker, in and out. Empty: no change to throttles" },
    ],
    body: (values, { topic }) => ({
      topic,
      ...(values.how === "spread"
        ? { brokers: brokerIds(values.brokers, "Brokers"), partition: whole(values.partition, "Partition") }
        : { replicas: replicasOf(values.replicas, "Replicas") }),
      bytes_per_s: whole(values.rate, "Throttle in bytes per second"),
    }),
  },
  "cancel-reassignment": {
    button: "Cancel a reassignment",
    title: ({ topic }) => `Cancel the reassignment of ${topic}`,
    fields: [{ name: "partition", label: "Partition", kind: "number", help: "Empty: all partitions that are being reassigned" }],
    body: (values, { topic }) => ({ topic, partition: whole(values.partition, "Partition") }),
  },
  "clear-throttles": {
    button: "Clear throttles",
    title: ({ topic }) => `Clear the throttles of all brokers and of ${topic}`,
    fields: [],
    body: (values, given) => given,
  },
  "reset-offsets": {
    button: "Reset offsets",
    title: ({ group }) => `Reset offsets of ${group}`,
    start: { to: "earliest" },
    fields: [
      {
        name: "to",
        label: "Where to",
        kind: "choice",
        choices: [
          ["earliest", "the first record"],
          ["latest", "the end"],
          ["time", "a time"],
          ["shift", "records forward or back"],
          ["offset", "an offset"],
        ],
      },
      {
        name: "time",
        label: "Time",
        kind: "text",
        help: "Such as 2026-11-21T17:30 (UTC), 2026-11-21T17:30+01:00, or -1h for an hour ago",
        isNeeded: true,
        isShown: ({ to }) => to === "time",
      },
      { name: "shift", label: "Records", kind: "number", help: "A negative number goes back", isNeeded: true, isShown: ({ to }) => to === "shift" },
      { name: "offset", label: "Offset", kind: "number", isNeeded: true, isShown: ({ to }) => to === "offset" },
      {
        name: "topics",
        label: "Topics",
        kind: "lines",
        help: "One on each line, such as orders, or orders:0,1 for two partitions. Empty: all in which it has committed offsets",
      },
    ],
    body: (values, { group }) => ({
      group,
      to: values.to,
      topics: linesOf(values.topics),
      ...(values.to === "time" && { time: values.time }),
      ...(values.to === "shift" && { shift: whole(values.shift, "Records") }),
      ...(values.to === "offset" && { offset: whole(values.offset, "Offset") }),
    }),
  },
  "produce-record": {
    button: "Produce a record",
    title: ({ topic }) => `Produce a record to ${topic}`,
    start: { keyForm: "null", valueForm: "text", headerForm: "text" },
    fields: [
      { name: "value", label: "Value", kind: "content", form: "valueForm", choices: CONTENT_FORMS },
      { name: "key", label: "Key", kind: "content", form: "keyForm", choices: CONTENT_FORMS },
      {
        name: "headers",
        label: "Headers",
        kind: "content",
        form: "headerForm",
        choices: CONTENT_FORMS.slice(0, 3),
        help: "One on each line, such as name: value",
      },
      { name: "partition", label: "Partition", kind: "number", help: "Empty: chosen by the key" },
    ],
    body: (values, { topic }) => ({
      topic,
      partition: whole(values.partition, "Partition"),
      key: content(values.keyForm, values.key),
      value: content(values.valueForm, values.value),
      headers: pairs(values.headers, ":", "Headers").map(([name, value]) => ({
        name,
        value: content(values.headerForm, value),
      })),
    }),
  },
};
