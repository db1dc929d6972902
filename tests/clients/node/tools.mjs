// bull, bee-queue, redlock, rate-limiter-flexible, connect-redis: usage: tools.mjs URL
import assert from 'node:assert/strict'
import Bee from 'bee-queue'
import Bull from 'bull'
import { RedisStore } from 'connect-redis'
import session from 'express-session'
import { Redis } from 'ioredis'
import Redlock from 'redlock'
import { createClient } from 'redis'
import * as limiters from 'rate-limiter-flexible'
import { check, eventually, main } from './checks.mjs'

function connect(url, defer, options) {
  const client = new Redis(url, options)
  client.on('error', () => {})
  defer(() => client.disconnect())
  return client
}

check('bull does, delays, retries and repeats jobs', async (url, defer) => {
  const queue = new Bull('bulls', url)
  defer(() => queue.close(true))
  await queue.isReady()
  const order = []
  queue.process(2, async (job) => {
    order.push(job.data.n)
    if (job.data.fails > job.attemptsMade) throw new Error('not yet')
    return job.data.n * 2
  }).catch(() => {})
  const job = await queue.add({ n: 4 })
  assert.equal(await job.finished(), 8)
  assert.equal(await (await queue.add({ n: 5, fails: 2 }, { attempts: 3, backoff: 20 })).finished(), 10)
  await assert.rejects((await queue.add({ n: 6, fails: 9 })).finished(), /not yet/)
  assert.equal(await (await queue.add({ n: 7 }, { delay: 200 })).finished(), 14)
  await queue.add({ n: 8 }, { repeat: { every: 100, limit: 2 } })
  await eventually(() => order.filter((n) => n === 8).length === 2, 'two repetitions')
  await eventually(async () => (await queue.getJobCounts()).active === 0)
  const counts = await queue.getJobCounts()
  assert.deepEqual([counts.completed, counts.failed], [5, 1])
  await queue.pause()
  assert.ok(await queue.isPaused())
  await queue.obliterate({ force: true })
})

check('bee-queue does, delays and retries jobs', async (url, defer) => {
  const queue = new Bee('bees', { redis: { url }, activateDelayedJobs: true, removeOnSuccess: false })
  queue.on('error', () => {})
  defer(() => queue.close(1000))
  let attempts = 0
  queue.process(async (job) => {
    if (job.data.fails && (attempts += 1) <= job.data.fails) throw new Error('not yet')
    job.reportProgress(50)
    return job.data.n + 1
  })
  const done = async (job) => {
    const result = new Promise((resolve, reject) => job.on('succeeded', resolve).on('failed', reject))
    await job.save()
    return result
  }
  assert.equal(await done(queue.createJob({ n: 1 })), 2)
  assert.equal(await done(queue.createJob({ n: 2, fails: 2 }).retries(3).backoff('fixed', 20)), 3)
  assert.equal(await done(queue.createJob({ n: 3 }).delayUntil(Date.now() + 200)), 4)
  assert.equal((await queue.checkHealth()).succeeded, 3)
})

check('redlock gives a resource to one at a time', async (url, defer) => {
  const client = connect(url, defer)
  const redlock = new Redlock([client], { retryCount: 100, retryDelay: 5, retryJitter: 5 })
  const hasty = new Redlock([connect(url, defer)], { retryCount: 0 })
  const lock = await redlock.lock('resource', 5000)
  await assert.rejects(hasty.lock('resource', 5000), { name: 'LockError' })
  const longer = await lock.extend(20_000)
  assert.ok((await client.pttl('resource')) > 5000)
  await longer.unlock()
  await assert.rejects(longer.unlock(), { name: 'LockError' })
  const seen = []
  await Promise.all(Array.from({ length: 8 }, async () => {
    const own = await redlock.lock('resource', 5000)
    const n = Number(await client.get('n'))
    await new Promise((resolve) => setTimeout(resolve, 2))
    await client.set('n', n + 1)
    seen.push(n)
    await own.unlock()
  }))
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6, 7])
  const both = await redlock.lock(['a', 'b'], 1000)
  assert.equal(await client.exists('a', 'b'), 2)
  await both.unlock()
})

for (const [name, open] of [
  ['ioredis', async (url, defer) => ({ storeClient: connect(url, defer, { enableOfflineQueue: true }) })],
  ['node-redis', async (url, defer) => {
    const client = await createClient({ url }).connect()
    defer(() => client.destroy())
    return { storeClient: client, useRedisPackage: true }
  }],
]) {
  check(`rate-limiter-flexible counts, on ${name}`, async (url, defer) => {
    const store = await open(url, defer)
    const limiter = new limiters.RateLimiterRedis({ ...store, keyPrefix: 'limit', points: 3, duration: 1, blockDuration: 0 })
    const left = []
    for (let n = 0; n < 3; n += 1) left.push((await limiter.consume('a')).remainingPoints)
    assert.deepEqual(left, [2, 1, 0])
    const refused = await limiter.consume('a').then(() => null, (reason) => reason)
    assert.ok(refused.msBeforeNext > 0 && refused.msBeforeNext <= 1000 && refused.consumedPoints === 4, JSON.stringify(refused))
    assert.equal((await limiter.get('a')).consumedPoints, 4)
    assert.equal((await limiter.reward('a', 2)).consumedPoints, 2)
    await limiter.block('a', 60)
    assert.ok((await limiter.get('a')).msBeforeNext > 50_000)
    assert.equal(await limiter.delete('a'), true)
    assert.equal(await limiter.get('a'), null)
    await limiter.consume('b', 3)
    await eventually(() => limiter.consume('b').then(() => true, () => false), 'the next second')
    const queue = new limiters.RateLimiterQueue(new limiters.RateLimiterRedis({ ...store, keyPrefix: 'queue', points: 2, duration: 1 }))
    const started = Date.now()
    for (let n = 0; n < 3; n += 1) await queue.removeTokens(1)
    assert.ok(Date.now() - started >= 500)
  })
}

check('connect-redis keeps sessions', async (url, defer) => {
  const client = await createClient({ url }).connect()
  defer(() => client.destroy())
  const store = new RedisStore({ client, prefix: 'sess:', ttl: 100 })
  assert.ok(store instanceof session.Store)
  const call = (name, ...words) => new Promise((resolve, reject) => store[name](...words, (error, value) => (error ? reject(error) : resolve(value))))
  await call('set', 'id', { cookie: {}, user: 'x' })
  assert.deepEqual(await call('get', 'id'), { cookie: {}, user: 'x' })
  const left = await client.ttl('sess:id')
  assert.ok(left > 90 && left <= 100)
  await call('touch', 'id', { cookie: {} })
  for (let n = 0; n < 150; n += 1) await call('set', `other:${n}`, { cookie: {} })
  assert.equal(await call('length'), 151)
  assert.equal((await call('ids')).length, 151)
  await call('destroy', 'id')
  assert.ok(!(await call('get', 'id')))
  await call('clear')
  assert.equal(await client.dbSize(), 0)
})

await main()
