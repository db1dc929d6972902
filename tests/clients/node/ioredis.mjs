// ioredis in both protocols: usage: ioredis.mjs URL
import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import { check, eventually, main } from './checks.mjs'

function eachProtocol(name, run) {
  for (const protocol of [2, 3]) {
    check(`${name} (RESP${protocol})`, (url, defer) => {
      const connect = (options = {}) => {
        const client = new Redis(url, { protocol, ...options })
        client.on('error', () => {})
        defer(() => client.disconnect())
        return client
      }
      return run(connect, url)
    })
  }
}

// Pairs of a reply that is a list in one protocol and may be a map in the other.
const pairs = (reply) => (Array.isArray(reply) ? Object.fromEntries(reply.flat().reduce((list, value, at, all) => (at % 2 ? list : [...list, [value, all[at + 1]]]), [])) : reply)

eachProtocol('values of each type', async (connect) => {
  const client = connect()
  assert.equal(await client.set('k', 'v', 'EX', 100), 'OK')
  assert.equal(await client.get('k'), 'v')
  assert.equal(await client.get('missing'), null)
  assert.deepEqual(await client.getBuffer('k'), Buffer.from('v'))
  assert.equal(await client.hset('h', { f: 1, g: 'x' }), 2)
  assert.deepEqual({ ...(await client.hgetall('h')) }, { f: '1', g: 'x' })
  assert.deepEqual(await client.hmget('h', 'f', 'none'), ['1', null])
  assert.equal(await client.zadd('z', 1.5, 'a', 2, 'b'), 2)
  const scores = pairs(await client.zrange('z', 0, -1, 'WITHSCORES'))
  assert.deepEqual([Number(scores.a), Number(scores.b)], [1.5, 2])
  assert.equal(await client.rpush('l', 1, 2, 3), 3)
  assert.deepEqual(await client.lrange('l', 0, -1), ['1', '2', '3'])
  assert.equal(await client.sadd('s', 'x', 'y'), 2)
  assert.deepEqual([...(await client.smembers('s'))].sort(), ['x', 'y'])
  assert.deepEqual(await client.mget('k', 'missing'), ['v', null])
  const binary = Buffer.from(Array.from({ length: 70_000 }, (_, n) => n % 256))
  await client.set('binary', binary)
  assert.deepEqual(await client.getBuffer('binary'), binary)
  await assert.rejects(client.lpush('k', 1), /^ReplyError: WRONGTYPE/)
  await assert.rejects(client.call('NOSUCH'), /unknown command 'NOSUCH'/)
  assert.match(await client.info('server'), /redis_version:7\.0\.15/)
})

eachProtocol('pipelines and transactions', async (connect) => {
  const client = connect()
  const results = await client.pipeline().set('k', 'v').lpush('k', 1).get('k').exec()
  assert.deepEqual([results[0], results[2]], [[null, 'OK'], [null, 'v']])
  assert.match(String(results[1][0]), /WRONGTYPE/)
  assert.deepEqual(await client.multi().incr('n').incr('n').exec(), [[null, 1], [null, 2]])
  await client.watch('n')
  await connect().incr('n')
  assert.equal(await client.multi().incr('n').exec(), null)
  await assert.rejects(client.multi().set('k', 'w').call('get').exec(), /EXECABORT/)
  assert.equal(await client.get('k'), 'v')
  await client.multi({ pipeline: false })
  assert.equal(await client.set('k', 'w'), 'QUEUED')
  assert.deepEqual(await client.exec(), [[null, 'OK']])
  const many = client.pipeline()
  for (let n = 0; n < 10_000; n += 1) many.incr('count')
  assert.equal((await many.exec()).at(-1)[1], 10_000)
})

eachProtocol('commands that are scripts', async (connect) => {
  const client = connect()
  await client.script('FLUSH')
  client.defineCommand('addTo', { numberOfKeys: 1, lua: "return {KEYS[1], redis.call('INCRBY', KEYS[1], ARGV[1])}" })
  assert.deepEqual(await client.addTo('n', 5), ['n', 5])
  assert.deepEqual(await client.addTo('n', 5), ['n', 10])
  await client.script('FLUSH')
  assert.deepEqual(await client.addTo('n', 1), ['n', 11])
  await client.script('FLUSH')
  assert.deepEqual(await client.pipeline().addTo('n', 1).addTo('n', 1).exec(), [[null, ['n', 12]], [null, ['n', 13]]])
  client.defineCommand('refuse', { numberOfKeys: 0, lua: "return redis.error_reply('MYCODE no')" })
  await assert.rejects(client.refuse(), /MYCODE no/)
})

eachProtocol('commands are put into pipelines by themselves', async (connect) => {
  const client = connect({ enableAutoPipelining: true })
  await client.ping()
  const before = Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))[1])
  const values = await Promise.all(Array.from({ length: 100 }, () => client.incr('n')))
  assert.deepEqual(values, Array.from({ length: 100 }, (_, n) => n + 1))
  assert.ok(Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))[1]) >= before + 100)
})

eachProtocol('messages reach subscribers', async (connect) => {
  const client = connect()
  const subscriber = connect()
  const got = []
  subscriber.on('message', (channel, text) => got.push([channel, text]))
  subscriber.on('pmessage', (pattern, channel, text) => got.push([pattern, channel, text]))
  const sharded = connect()
  sharded.on('smessage', (channel, text) => got.push(['s', channel, text]))
  assert.equal(await subscriber.subscribe('news', 'more'), 2)
  assert.equal(await subscriber.psubscribe('n*'), 3)
  assert.equal(await sharded.ssubscribe('part'), 1)
  assert.equal(await client.publish('news', 'hello'), 2)
  assert.equal(await client.spublish('part', 'x'), 1)
  await eventually(() => got.length === 3)
  assert.deepEqual(got.filter(([kind]) => kind !== 's'), [['news', 'hello'], ['n*', 'news', 'hello']])
  assert.deepEqual(got.filter(([kind]) => kind === 's'), [['s', 'part', 'x']])
  assert.equal(await subscriber.unsubscribe('news', 'more'), 1)
  assert.equal(await subscriber.punsubscribe('n*'), 0)
  assert.equal(await sharded.sunsubscribe('part'), 0)
  assert.equal(await subscriber.get('k'), null)
})

eachProtocol('blocked clients are served in order', async (connect) => {
  const client = connect()
  const waits = []
  for (let n = 0; n < 3; n += 1) {
    waits.push(connect().blpop('a', 'b', 20))
    await eventually(async () => (await client.info('clients')).includes(`blocked_clients:${n + 1}\r`))
  }
  await client.rpush('b', 1, 2, 3)
  assert.deepEqual(await Promise.all(waits), [['b', '1'], ['b', '2'], ['b', '3']])
  const move = connect().blmove('l', 'm', 'LEFT', 'RIGHT', 20)
  await eventually(async () => (await client.info('clients')).includes('blocked_clients:1\r'))
  await client.rpush('l', 'x')
  assert.equal(await move, 'x')
  assert.equal(await client.blpop('nothing', 0.05), null)
})

eachProtocol('groups share a stream', async (connect) => {
  const client = connect()
  const entries = (reply) => (Array.isArray(reply) ? reply[0][1] : Object.values(reply)[0])
  const reading = connect().xread('BLOCK', 20_000, 'STREAMS', 's', '$')
  await eventually(async () => (await client.info('clients')).includes('blocked_clients:1\r'))
  const first = await client.xadd('s', '*', 'n', 1)
  assert.deepEqual(entries(await reading), [[first, ['n', '1']]])
  const second = await client.xadd('s', '*', 'n', 2)
  await client.xgroup('CREATE', 's', 'g', 0)
  const read = await client.xreadgroup('GROUP', 'g', 'c', 'COUNT', 5, 'STREAMS', 's', '>')
  assert.deepEqual(entries(read).map(([id]) => id), [first, second])
  assert.equal(await client.xack('s', 'g', first), 1)
  assert.deepEqual((await client.xautoclaim('s', 'g', 'd', 0, 0)).slice(0, 2), ['0-0', [[second, ['n', '2']]]])
  assert.deepEqual((await client.xpending('s', 'g'))[0], 1)
})

eachProtocol('commands wait while the connection is gone', async (connect) => {
  const admin = connect()
  const client = connect({ connectionName: 'victim', retryStrategy: () => 20 })
  const first = await client.client('ID')
  const again = new Promise((resolve) => client.once('reconnecting', resolve))
  assert.equal(await admin.client('KILL', 'ID', first), 1)
  await again
  assert.notEqual(client.status, 'ready')
  assert.deepEqual(await Promise.all([client.set('k', 'v'), client.get('k')]), ['OK', 'v'])
  assert.equal(await client.client('GETNAME'), 'victim')
  const impatient = connect({ enableOfflineQueue: false, lazyConnect: true })
  await assert.rejects(impatient.get('k'), /Stream isn't writeable/)
  const subscriber = connect({ retryStrategy: () => 20 })
  await subscriber.subscribe('c')
  const messages = []
  subscriber.on('message', (_, text) => messages.push(text))
  await admin.client('KILL', 'TYPE', 'pubsub')
  await eventually(async () => (await admin.publish('c', 'x')) === 1 && messages.length > 0, 'a message after the subscription came back')
})

eachProtocol('scans and monitors', async (connect) => {
  const client = connect()
  const pipe = client.pipeline()
  for (let n = 0; n < 500; n += 1) pipe.set(`k:${n}`, n).zadd('z', n, n)
  await pipe.exec()
  const seen = new Set()
  for await (const keys of client.scanStream({ match: 'k:*', count: 50 })) keys.forEach((key) => seen.add(key))
  assert.equal(seen.size, 500)
  const members = new Set()
  for await (const batch of client.zscanStream('z')) batch.forEach((value, at) => at % 2 || members.add(value))
  assert.equal(members.size, 500)
  const monitor = await client.monitor()
  const commands = []
  monitor.on('monitor', (_time, words) => commands.push(words.join(' ')))
  await client.set('seen', 'a b')
  await eventually(() => commands.some((words) => words.toLowerCase() === 'set seen a b'))
  monitor.disconnect()
})

await main()
