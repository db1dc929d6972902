// Queues a mail, once an hour at most for each address: the marker and the job come together.
import Redis from "ioredis";

const [address] = process.argv.slice(2);
const redis = new Redis(process.env.REDIS_URL, { retryStrategy: null });
redis.on("error", (error) => console.error(error.message));

const push = `
  if not redis.call('SET', KEYS[1], 1, 'EX', ARGV[1], 'NX') then return 0 end
  redis.call('LPUSH', KEYS[2], ARGV[2])
  return 1`;
const first = await redis.eval(push, 2, `mailed:${address}`, "mails", 3600, JSON.stringify({ address }));

console.log(first ? "queued" : "not again within an hour");
await redis.quit();
