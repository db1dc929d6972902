// Counts an hour's failed logins: no counter is ever without its end.
import Redis from "ioredis";

const [user] = process.argv.slice(2);
const redis = new Redis(process.env.REDIS_URL, { retryStrategy: null });
redis.on("error", (error) => console.error(error.message));

const count = `
  local failures = redis.call('INCR', KEYS[1])
  if failures == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
  return failures`;
const failures = await redis.eval(count, 1, `failed:${user}`, 3600);

console.log(failures > 3 ? "locked out" : `failure ${failures}`);
await redis.quit();
