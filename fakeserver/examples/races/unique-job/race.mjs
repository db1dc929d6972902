// Queues a mail, once an hour at most for each address.
import Redis from "ioredis";

const [address] = process.argv.slice(2);
const redis = new Redis(process.env.REDIS_URL);

const first = await redis.set(`mailed:${address}`, 1, "EX", 3600, "NX");
if (first) {
  await redis.lpush("mails", JSON.stringify({ address }));
}

console.log(first ? "queued" : "not again within an hour");
await redis.quit();
