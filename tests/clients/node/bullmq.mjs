// bullmq: usage: bullmq.mjs URL
import assert from 'node:assert/strict'
import { FlowProducer, Queue, QueueEvents, Worker, DelayedError } from 'bullmq'
import { Redis } from 'ioredis'
import { check, eventually, main } from './checks.mjs'

const NAME = 'jobs'

// A queue with its events and a worker, ended with the check.
async function parts(url, defer, processor, options = {}) {
  const connect = () => {
    const connection = new Redis(url, { maxRetriesPerRequest: null })
    connection.on('error', () => {})
    defer(() => connection.disconnect())
    return connection
  }
  const queue = new Queue(NAME, { connection: connect() })
  const events = new QueueEvents(NAME, { connection: connect() })
  await events.waitUntilReady()
  let worker
  if (processor) {
    worker = new Worker(NAME, processor, { connection: connect(), drainDelay: 1, ...options })
    worker.on('error', () => {})
    await worker.waitUntilReady()
    defer(() => worker.close(true))
  }
  defer(() => events.close())
  defer(() => queue.close())
  return { queue, events, worker, connect }
}

check('jobs are done and tell it', async (url, defer) => {
  const { queue, events } = await parts(url, defer, async (job) => {
    await job.updateProgress(50)
    await job.log('half')
    return job.data.a + job.data.b
  }, { concurrency: 3 })
  const seen = []
  for (const name of ['added', 'waiting', 'active', 'progress', 'completed', 'drained']) events.on(name, () => seen.push(name))
  const job = await queue.add('add', { a: 2, b: 3 })
  assert.equal(await job.waitUntilFinished(events, 20_000), 5)
  const jobs = await queue.addBulk(Array.from({ length: 20 }, (_, n) => ({ name: 'add', data: { a: n, b: n } })))
  assert.deepEqual(await Promise.all(jobs.map((one) => one.waitUntilFinished(events, 20_000))), Array.from({ length: 20 }, (_, n) => 2 * n))
  assert.deepEqual((await queue.getJobLogs(job.id)).logs, ['half'])
  const counts = await queue.getJobCounts()
  assert.equal(counts.completed, 21)
  assert.equal(await (await queue.getJob(job.id)).getState(), 'completed')
  await eventually(() => ['added', 'waiting', 'active', 'progress', 'completed', 'drained'].every((name) => seen.includes(name)), 'every event')
  assert.equal((await queue.clean(0, 100, 'completed')).length, 21)
})

check('failed jobs are retried, with a pause between', async (url, defer) => {
  const { queue, events } = await parts(url, defer, async (job) => {
    if (job.attemptsMade < job.data.fails) throw new Error(`attempt ${job.attemptsMade}`)
    return job.attemptsMade
  })
  const job = await queue.add('retry', { fails: 2 }, { attempts: 3, backoff: { type: 'exponential', delay: 50 } })
  assert.equal(await job.waitUntilFinished(events, 20_000), 2)
  const failing = await queue.add('fail', { fails: 9 }, { attempts: 2, backoff: 20 })
  await assert.rejects(failing.waitUntilFinished(events, 20_000), /attempt 1/)
  assert.equal((await queue.getFailed()).length, 1)
  assert.equal((await queue.getJob(failing.id)).failedReason, 'attempt 1')
  await queue.retryJobs()
  await eventually(async () => (await queue.getJob(failing.id)).attemptsMade > 2, 'another attempt')
})

check('delays and priorities decide the order', async (url, defer) => {
  const order = []
  const { queue, events } = await parts(url, defer, async (job) => {
    order.push(job.name)
  }, { autorun: false })
  const delayed = await queue.add('delayed', {}, { delay: 400 })
  await queue.add('low', {}, { priority: 10 })
  await queue.add('high', {}, { priority: 1 })
  await queue.add('plain', {})
  await queue.add('first', {}, { lifo: true })
  await queue.add('first', {}, { jobId: 'same' })
  await queue.add('ignored', {}, { jobId: 'same' })
  assert.deepEqual(await queue.getJobCounts('waiting', 'delayed', 'prioritized'), { waiting: 3, delayed: 1, prioritized: 2 })
  assert.equal(await delayed.getState(), 'delayed')
  const second = new Worker(NAME, async (job) => { order.push(job.name) }, { connection: queue.opts.connection })
  second.on('error', () => {})
  defer(() => second.close(true))
  await delayed.waitUntilFinished(events, 20_000)
  assert.deepEqual(order, ['first', 'plain', 'first', 'high', 'low', 'delayed'])
})

check('a parent waits for its children', async (url, defer) => {
  const { queue, events, connect } = await parts(url, defer, async (job) => {
    if (job.name === 'parent') return Object.values(await job.getChildrenValues()).reduce((sum, n) => sum + n, 0)
    return job.data.n
  })
  const flow = new FlowProducer({ connection: connect() })
  defer(() => flow.close())
  const tree = await flow.add({
    name: 'parent', queueName: NAME, children: [
      { name: 'child', data: { n: 1 }, queueName: NAME },
      { name: 'parent', queueName: NAME, children: [{ name: 'child', data: { n: 2 }, queueName: NAME }, { name: 'child', data: { n: 3 }, queueName: NAME }] },
    ],
  })
  assert.equal(await tree.job.waitUntilFinished(events, 20_000), 6)
  assert.equal((await queue.getJobCounts()).completed, 5)
})

check('jobs repeat on schedule', async (url, defer) => {
  let runs = 0
  const { queue } = await parts(url, defer, async () => { runs += 1 })
  await queue.upsertJobScheduler('often', { every: 200 }, { name: 'tick', data: { x: 1 } })
  await queue.upsertJobScheduler('nightly', { pattern: '0 3 * * *' }, { name: 'night' })
  assert.equal(await queue.getJobSchedulersCount(), 2)
  await eventually(() => runs >= 3, 'three runs')
  assert.equal((await queue.getJobScheduler('often')).every, 200)
  assert.ok(await queue.removeJobScheduler('often'))
  assert.equal(await queue.getJobSchedulersCount(), 1)
})

check('rates are limited', async (url, defer) => {
  const times = []
  const { queue, events } = await parts(url, defer, async () => { times.push(Date.now()) }, { limiter: { max: 2, duration: 500 }, concurrency: 5 })
  const jobs = await queue.addBulk(Array.from({ length: 5 }, () => ({ name: 'one', data: {} })))
  await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 20_000)))
  assert.ok(times[2] - times[0] >= 300 && times[4] - times[0] >= 800, JSON.stringify(times.map((time) => time - times[0])))
})

check('a paused queue does nothing until it is resumed', async (url, defer) => {
  const { queue, events, worker } = await parts(url, defer, async () => 'done')
  await queue.pause()
  assert.ok(await queue.isPaused())
  const job = await queue.add('one', {})
  await assert.rejects(job.waitUntilFinished(events, 300), /timed out/)
  assert.equal(await job.getState(), 'waiting')
  await queue.resume()
  assert.equal(await job.waitUntilFinished(events, 20_000), 'done')
  await worker.pause()
  assert.ok(worker.isPaused())
})

check('a job can put itself off', async (url, defer) => {
  const { queue, events } = await parts(url, defer, async (job, token) => {
    if (job.data.seen) return 'second time'
    await job.updateData({ seen: true })
    await job.moveToDelayed(Date.now() + 100, token)
    throw new DelayedError()
  })
  const job = await queue.add('later', {})
  assert.equal(await job.waitUntilFinished(events, 20_000), 'second time')
})

check('a stalled job is done by another worker', async (url, defer) => {
  let calls = 0
  const { queue, events, worker } = await parts(url, defer, () => {
    calls += 1
    return calls === 1 ? new Promise(() => {}) : Promise.resolve('rescued')
  }, { lockDuration: 300, stalledInterval: 300, skipLockRenewal: true, concurrency: 2 })
  const job = await queue.add('stall', {})
  assert.equal(await job.waitUntilFinished(events, 20_000), 'rescued')
  assert.equal(calls, 2)
  await worker.close(true)
})

check('nothing is left of an obliterated queue', async (url, defer) => {
  const { queue, connect } = await parts(url, defer)
  await queue.addBulk(Array.from({ length: 50 }, (_, n) => ({ name: 'job', data: { n }, opts: n % 3 ? {} : { delay: 60_000 } })))
  assert.equal(await queue.count(), 50)
  await queue.drain(true)
  assert.equal(await queue.count(), 0)
  await queue.addBulk(Array.from({ length: 5 }, (_, n) => ({ name: 'job', data: { n } })))
  await queue.obliterate({ force: true })
  assert.deepEqual((await connect().keys(`bull:${NAME}:*`)).filter((key) => !/:(meta|events)$/.test(key)), [])
})

await main()
