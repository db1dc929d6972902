// One point of a limit of rate-limiter-flexible.
import Redis from "ioredis";
import { RateLimiterRedis } from "rate-limiter-flexible";

const redis = new Redis(process.env.REDIS_URL, { retryStrategy: null });
redis.on("error", (error) => console.error(error.message));
const limiter = new RateLimiterRedis({ storeClient: redis, points: 1, duration: 86400 });

const answer = await limiter.consume("ada").catch((refusal) => refusal);
if (answer instanceof Error) throw answer;
console.log(answer.consumedPoints > 1 ? "refused" : "admitted");
await redis.quit();
