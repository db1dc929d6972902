// Renews a lease on leadership, if it is still ours, or takes one that nobody has: in one script.
import Redis from "ioredis";

const [me] = process.argv.slice(2);
const redis = new Redis(process.env.REDIS_URL, { retryStrategy: null });
redis.on("error", (error) => console.error(error.message));

const lead = `
  local leader = redis.call('GET', KEYS[1])
  if leader and leader ~= ARGV[1] then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
  return 1`;

console.log(`${me} ${(await redis.eval(lead, 1, "leader", me, 30)) ? "leads" : "follows"}`);
await redis.quit();
