// Signs a device in: the list of a user's sessions is one JSON value.
import { createClient } from "redis";

const [user, device] = process.argv.slice(2);
const client = await createClient({ url: process.env.REDIS_URL }).connect();

const key = `sessions:${user}`;
const sessions = JSON.parse((await client.get(key)) ?? "[]");
sessions.push({ device });
await client.set(key, JSON.stringify(sessions));

console.log(`${device} is signed in`);
await client.close();
