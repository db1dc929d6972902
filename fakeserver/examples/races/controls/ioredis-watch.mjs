// A read and a write under WATCH, with ioredis.
import Redis from "ioredis";

const redis = new Redis(process.env.REDIS_URL, { retryStrategy: null });
redis.on("error", (error) => console.error(error.message));

let written = null;
while (!written) {
  await redis.watch("count");
  const count = Number(await redis.get("count"));
  written = await redis.multi().set("count", count + 1).exec();
}
console.log("counted");
await redis.quit();
