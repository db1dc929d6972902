// Counts an hour's failed logins: the first one starts the hour.
import Redis from "ioredis";

const [user] = process.argv.slice(2);
const redis = new Redis(process.env.REDIS_URL);

const key = `failed:${user}`;
const failures = await redis.incr(key);
if (failures === 1) {
  await redis.expire(key, 3600);
}

console.log(failures > 3 ? "locked out" : `failure ${failures}`);
await redis.quit();
