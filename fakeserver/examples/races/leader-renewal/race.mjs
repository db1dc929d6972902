// Renews a lease on leadership, if it is still ours, or takes one that nobody has.
import Redis from "ioredis";

const [me] = process.argv.slice(2);
const redis = new Redis(process.env.REDIS_URL);

async function lead() {
  const leader = await redis.get("leader");
  if (leader === me) {
    await redis.set("leader", me, "EX", 30);
    return true;
  }
  return leader === null && (await redis.set("leader", me, "EX", 30, "NX")) === "OK";
}

console.log(`${me} ${(await lead()) ? "leads" : "follows"}`);
await redis.quit();
