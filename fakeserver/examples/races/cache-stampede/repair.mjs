// Reads a report through a cache; whoever gets the guard looks again before it computes.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const redis = new Redis(process.env.REDIS_URL, { retryStrategy: null });
redis.on("error", (error) => console.error(error.message));
const owner = randomUUID();
const release = `
  if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
  return 0`;

async function report() {
  if (!(await redis.set("report:guard", owner, "EX", 30, "NX"))) {
    await sleep(20);
    return (await fromCache()) ?? report();
  }
  const text = (await fromCache()) ?? (await compute());
  await redis.eval(release, 1, "report:guard", owner);
  return text;
}

async function fromCache() {
  const cached = await redis.get("report");
  return cached && `${cached}, from the cache`;
}

async function compute() {
  await redis.set("report", "sales: 41", "EX", 30);
  return "sales: 41, computed";
}

console.log((await fromCache()) ?? (await report()));
await redis.quit();
