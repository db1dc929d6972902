// Adds a job to a queue of bullmq: `add ID`; does the first one: `work`.
import { Queue, Worker } from "bullmq";
import Redis from "ioredis";

const [what, jobId] = process.argv.slice(2);
const connection = new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null, retryStrategy: null });
connection.on("error", (error) => console.error(error.message));

if (what === "add") {
  const queue = new Queue("jobs", { connection, skipVersionCheck: true });
  await queue.add("add", { a: 2, b: 3 }, { jobId });
  console.log("queued");
} else {
  const worker = new Worker("jobs", null, { connection, skipVersionCheck: true });
  const job = await worker.getNextJob("token", { block: false });
  await job.moveToCompleted(job.data.a + job.data.b, "token", false);
  console.log("worked");
}
connection.disconnect();
process.exit(0);
