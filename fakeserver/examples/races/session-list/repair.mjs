// Signs a device in: each session is a field of its own, and no login reads what it writes.
import { createClient } from "redis";

const [user, device] = process.argv.slice(2);
const client = createClient({ url: process.env.REDIS_URL, socket: { reconnectStrategy: false } });
client.on("error", (error) => console.error(error.message));
await client.connect();

await client.hSet(`sessions:${user}`, device, JSON.stringify({ device }));

console.log(`${device} is signed in`);
await client.close();
