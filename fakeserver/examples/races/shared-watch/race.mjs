// Sells one piece if there is any; a page of prices is served meanwhile, on the same connection.
import Redis from "ioredis";

const redis = new Redis(process.env.REDIS_URL);

async function sell() {
  for (;;) {
    await redis.watch("stock");
    const stock = Number(await redis.get("stock"));
    if (stock === 0) return "sold out";
    const sold = await redis.multi().set("stock", stock - 1).exec();
    if (sold) return "sold";
  }
}

async function prices() {
  const [[, apple], [, pear]] = await redis.multi().get("price:apple").get("price:pear").exec();
  return `apple ${apple}, pear ${pear}`;
}

console.log((await Promise.all([sell(), prices()])).join("; "));
await redis.quit();
