// Sells one piece if there is any, on a connection of its own; a page of prices is served meanwhile.
import Redis from "ioredis";

const redis = new Redis(process.env.REDIS_URL, { retryStrategy: null });
const own = redis.duplicate();
for (const each of [redis, own]) each.on("error", (error) => console.error(error.message));

async function sell() {
  for (;;) {
    await own.watch("stock");
    const stock = Number(await own.get("stock"));
    if (stock === 0) return "sold out";
    const sold = await own.multi().set("stock", stock - 1).exec();
    if (sold) return "sold";
  }
}

async function prices() {
  const [[, apple], [, pear]] = await redis.multi().get("price:apple").get("price:pear").exec();
  return `apple ${apple}, pear ${pear}`;
}

console.log((await Promise.all([sell(), prices()])).join("; "));
await Promise.all([redis.quit(), own.quit()]);
