// SPDX-License-Identifier: Apache-2.0
//
// Reads documents of an archive by their ids: the first one alone, then all in one batch.
// ../README.md says what the examples show.
//
// usage: node read_documents.js SERVER ARCHIVE ID...
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

// For errors without RetryInfo: a server that is down is reported soon.
const ATTEMPTS_MAX = 6;
const FIRST_DELAY_MS = 100;
const DEADLINE_MS = 60_000;

const protos = process.env.QUIRE_PROTO
  ?? fileURLToPath(new URL("../../../proto", import.meta.url));
const { quire } = grpc.loadPackageDefinition(protoLoader.loadSync(
  ["quire/v1/archive.proto", "quire/v1/error_details.proto"],
  // Numbers of 64 bits do not fit in those of JavaScript.
  { includeDirs: [protos], keepCase: true, longs: String, enums: String, defaults: true }));

// Details of an error: type name -> message. quire.v1 has copies of the google.rpc messages.
const decoders = { ErrorInfo: "RpcErrorInfo", RetryInfo: "RpcRetryInfo" };
const types = protoLoader.loadSync("quire/v1/error_details.proto",
  { includeDirs: [protos], keepCase: true, longs: String, defaults: true });

function decode(name, bytes) {
  return types[`quire.v1.${name}`].deserialize(bytes);
}

function detailsOf(error) {
  const found = {};
  for (const value of error.metadata?.get("grpc-status-details-bin") ?? []) {
    for (const detail of decode("RpcStatus", value).details) {
      const name = detail.type_url.replace(/^.*google\.rpc\./, "");
      if (name in decoders) {
        found[name] = decode(decoders[name], detail.value);
      }
    }
  }
  return found;
}

// The name of the ErrorReason of a failed call.
function reasonOf(error) {
  const info = detailsOf(error).ErrorInfo;
  return info?.domain === "quire" ? info.reason : grpc.status[error.code] ?? "UNKNOWN";
}

// Milliseconds until the call is repeated; undefined if it must not be.
function delayAfter(error, failures) {
  if (![grpc.status.UNAVAILABLE, grpc.status.RESOURCE_EXHAUSTED].includes(error.code)) {
    return undefined;
  }
  const delay = detailsOf(error).RetryInfo?.retry_delay;
  if (delay) {
    return Number(delay.seconds) * 1000 + delay.nanos / 1e6;
  }
  // Without RetryInfo waiting does not help a request that is too large.
  return error.code === grpc.status.UNAVAILABLE && failures + 1 < ATTEMPTS_MAX
    ? FIRST_DELAY_MS * 2 ** failures : undefined;
}

// Calls with metadata by which a proxy in front of several servers routes calls: the archive,
// and the number of attempts after which it should select another server.
async function withRetries(archive, call) {
  const metadata = new grpc.Metadata();
  metadata.set("quire-archive", archive);
  const end = Date.now() + DEADLINE_MS;
  let unavailable = 0;
  for (let failures = 0; ; failures++) {
    try {
      return await call(metadata.clone());
    } catch (error) {
      // Another server would have to open the archive, too.
      if (error.code === grpc.status.UNAVAILABLE && reasonOf(error) !== "ARCHIVE_OPENING") {
        unavailable++;
        metadata.set("quire-attempt", String(unavailable));
      }
      const delay = delayAfter(error, failures);
      if (delay === undefined || Date.now() + delay >= end) {
        throw error;
      }
      await sleep(delay);
    }
  }
}

class Reader {
  constructor(server, archive) {
    // Repeats calls itself: gRPC's own retries know nothing of RetryInfo.
    this.client = new quire.v1.Archive(server, grpc.credentials.createInsecure(),
      { "grpc.enable_retries": 0 });
    this.archive = archive;
  }

  request(id) {
    return { archive: this.archive, document: { id: Buffer.from(id) } };
  }

  options() {
    return { deadline: Date.now() + DEADLINE_MS };
  }

  unary(method, request) {
    return withRetries(this.archive, (metadata) => new Promise((resolve, reject) => {
      this.client[method](request, metadata, this.options(),
        (error, response) => (error ? reject(error) : resolve(response)));
    }));
  }

  // Reads one document in one message, or as a stream if it does not fit in one.
  async read(id) {
    try {
      return { data: (await this.unary("Read", this.request(id))).data };
    } catch (error) {
      if (reasonOf(error) === "LIMIT_EXCEEDED") {
        return this.readLarge(id);
      }
      if (error.code === grpc.status.NOT_FOUND) {
        return { reason: reasonOf(error) };
      }
      throw error;
    }
  }

  readLarge(id) {
    return withRetries(this.archive, async (metadata) => {
      const parts = [];
      const stream = this.client.ReadStream(this.request(id), metadata, this.options());
      for await (const message of stream) {
        parts.push(message.data);
      }
      return { data: Buffer.concat(parts) };
    });
  }

  // Reads many documents in the order that is fastest for the server.
  async readBatch(ids) {
    const { limits } = await this.unary("GetArchive", { archive: this.archive });
    const answers = new Array(ids.length);
    const pending = new Set(ids.keys());
    await withRetries(this.archive, (metadata) => this.batchOnce(
      metadata, ids, Number(limits.batch_message_items_max), pending, answers));
    for (const [index, id] of ids.entries()) {
      if (answers[index].reason === "LIMIT_EXCEEDED") {
        answers[index] = await this.readLarge(id);
      }
    }
    return answers;
  }

  // Asks for the pending documents; removes those that are answered.
  async batchOnce(metadata, ids, itemsMax, pending, answers) {
    const stream = this.client.BatchRead(metadata, this.options());
    try {
      const items = [...pending].map((tag) => ({ tag, document: { id: Buffer.from(ids[tag]) } }));
      // The server takes more items as its answers are read: write() only queues them.
      for (let at = 0; at < items.length; at += itemsMax) {
        stream.write({ archive: this.archive, items: items.slice(at, at + itemsMax) });
      }
      stream.end();
      for await (const message of stream) {
        for (const result of message.results) {
          const tag = Number(result.tag);
          if (!pending.delete(tag)) {
            throw new Error(`an answer to nothing, tag ${result.tag}`);
          }
          answers[tag] = result.status?.code ? { reason: result.status.reason }
            : { data: result.data };
        }
      }
    } finally {
      stream.cancel();
    }
    if (pending.size > 0) {
      throw new Error(`${pending.size} items have no answer`);
    }
  }
}

function show(how, id, answer) {
  if (answer.reason !== undefined) {
    console.log(how, id, "error", answer.reason);
    return;
  }
  console.log(how, id, String(answer.data.length),
    createHash("sha256").update(answer.data).digest("hex"));
}

async function main(server, archive, ids) {
  const reader = new Reader(server, archive);
  try {
    show("read", ids[0], await reader.read(ids[0]));
    for (const [index, answer] of (await reader.readBatch(ids)).entries()) {
      show("batch", ids[index], answer);
    }
  } finally {
    reader.client.close();
  }
}

const [server, archive, ...ids] = process.argv.slice(2);
if (ids.length === 0) {
  console.error("usage: node read_documents.js SERVER ARCHIVE ID...");
  process.exitCode = 2;
} else {
  try {
    await main(server, archive, ids);
  } catch (error) {
    console.error(`read_documents: ${reasonOf(error)}: ${error.message}`);
    process.exitCode = 1;
  }
}
