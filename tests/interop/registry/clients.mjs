// Confluent's JavaScript client and serializers, and those of kafkajs, with a registry and a broker: BOOTSTRAP URL TOPIC.
// Writes to TOPIC-avro, -json and -protobuf with kafkajs, then reads what is in TOPIC-ours-… and prints each as JSON.

import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { Kafka, logLevel } = require("kafkajs");
const { SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");
const confluent = require("@confluentinc/schemaregistry");
const { create } = require("@bufbuild/protobuf");
const { TimestampSchema } = require("@bufbuild/protobuf/wkt");

const [bootstrap, url, topic] = process.argv.slice(2);
const client = new confluent.SchemaRegistryClient({ baseURLs: [url] });
const AVRO = JSON.stringify({
  type: "record", name: "Order", fields: [
    { name: "id", type: "long" }, { name: "note", type: ["null", "string"], default: null },
    { name: "tags", type: { type: "map", values: "int" } }],
});
const JSON_SCHEMA = JSON.stringify({
  $schema: "http://json-schema.org/draft-07/schema#", title: "Order", type: "object",
  properties: { id: { type: "integer" }, note: { type: "string" } }, required: ["id"],
});
await client.register(`${topic}-avro-value`, { schemaType: "AVRO", schema: AVRO });
await client.register(`${topic}-json-value`, { schemaType: "JSON", schema: JSON_SCHEMA });
const VALUE = confluent.SerdeType.VALUE;
const protobuf = new confluent.ProtobufSerializer(client, VALUE, { autoRegisterSchemas: true });
protobuf.registry.add(TimestampSchema);
const made = {
  avro: await new confluent.AvroSerializer(client, VALUE, { useLatestVersion: true })
    .serialize(`${topic}-avro`, { id: 5, note: "Æsop", tags: { a: 1 } }),
  json: await new confluent.JsonSerializer(client, VALUE, { useLatestVersion: true, validate: true })
    .serialize(`${topic}-json`, { id: 5, note: "Æsop" }),
  protobuf: await protobuf.serialize(`${topic}-protobuf`, create(TimestampSchema, { seconds: 5n << 33n, nanos: 7 })),
};
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR });
const producer = kafka.producer();
await producer.connect();
const other = new SchemaRegistry({ host: url });
const { id } = await other.register({ type: SchemaType.AVRO, schema: AVRO }, { subject: `${topic}-kafkajs` });
const byKafkajs = await other.encode(id, { id: 6, note: null, tags: {} });
await producer.send({ topic: `${topic}-avro`, messages: [{ value: made.avro }, { value: byKafkajs }] });
await producer.send({ topic: `${topic}-json`, messages: [{ value: made.json }] });
await producer.send({ topic: `${topic}-protobuf`, messages: [{ value: made.protobuf }] });
await producer.disconnect();

const readers = {
  avro: new confluent.AvroDeserializer(client, VALUE, {}),
  json: new confluent.JsonDeserializer(client, VALUE, { validate: true }),
  protobuf: new confluent.ProtobufDeserializer(client, VALUE, {}),
};
const shown = (value) => JSON.stringify(value, (name, one) => (name.startsWith("$") ? undefined : typeof one === "bigint" ? `${one}` : one));
const consumer = kafka.consumer({ groupId: `${topic}-javascript` });
await consumer.connect();
for (const format of Object.keys(readers)) {
  await consumer.subscribe({ topic: `${topic}-ours-${format}`, fromBeginning: true });
}
const lines = [];
await new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error(`read ${lines.length} records only`)), 60_000).unref();
  consumer.run({
    eachMessage: async ({ topic: from, message }) => {
      const format = from.split("-").at(-1);
      lines.push(`${format} ${shown(await readers[format].deserialize(from, message.value))}`);
      if (format === "avro") lines.push(`kafkajs ${shown(await other.decode(message.value))}`);
      if (lines.length === 4) resolve();
    },
  });
});
console.log(lines.sort().join("\n"));
await consumer.disconnect();
process.exit(0);
