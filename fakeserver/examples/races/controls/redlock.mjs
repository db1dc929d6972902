// redlock on one server, around a read and a write.
import Redis from "ioredis";
import Redlock from "redlock";

const redis = new Redis(process.env.REDIS_URL, { retryStrategy: null });
redis.on("error", (error) => console.error(error.message));
const redlock = new Redlock([redis], { retryCount: 500, retryDelay: 20, retryJitter: 0 });

const lock = await redlock.lock("lock", 30_000);
await redis.set("count", Number(await redis.get("count")) + 1);
await lock.unlock();
console.log("counted");
await redis.quit();
