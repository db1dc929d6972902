// Reads a report through a cache; one process computes it while the others wait.
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";

const redis = new Redis(process.env.REDIS_URL, { retryStrategy: null });

async function report() {
  const cached = await redis.get("report");
  if (cached) return `${cached}, from the cache`;
  if (!(await redis.set("report:guard", process.pid, "EX", 30, "NX"))) {
    await sleep(20);
    return report();
  }
  const computed = "sales: 41";
  await redis.set("report", computed, "EX", 30);
  await redis.del("report:guard");
  return `${computed}, computed`;
}

console.log(await report());
await redis.quit();
