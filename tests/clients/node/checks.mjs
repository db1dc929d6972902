// What the Node suites share: named checks with a deadline, and waiting for a condition.
import path from 'node:path'
import { Redis } from 'ioredis'

const CHECK_MS = 60_000
const checks = []

// Makes a function one of this suite's checks: it is called with the server's URL and a `defer`, on an empty server.
// What is handed to `defer` is called when the check is over, last in first out.
export function check(name, run) {
  checks.push({ name, run })
}

export async function eventually(condition, what = 'the condition', ms = 20_000) {
  const deadline = Date.now() + ms
  for (;;) {
    const value = await condition()
    if (value) return value
    if (Date.now() > deadline) throw new Error(`${what} did not come about within ${ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function within(ms, promise) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

// Runs the checks on the server whose URL is the program's argument; the exit status tells whether all passed.
export async function main() {
  const url = process.argv[2]
  const suite = path.basename(process.argv[1])
  const admin = new Redis(url)
  let failed = 0
  for (const { name, run } of checks) {
    const deferred = []
    await admin.flushall()
    try {
      await within(CHECK_MS, run(url, (end) => deferred.push(end)))
    } catch (error) {
      failed += 1
      console.log(`FAILED ${suite}: ${name}: ${error.stack ?? error}`)
    }
    for (const end of deferred.reverse()) {
      await within(10_000, Promise.resolve().then(end)).catch((error) => {
        failed += 1
        console.log(`FAILED ${suite}: ${name}, at its end: ${error.stack ?? error}`)
      })
    }
  }
  admin.disconnect()
  console.log(`${suite}: ${checks.length - failed} passed, ${failed} failed`)
  process.exit(failed || !checks.length ? 1 : 0)
}
