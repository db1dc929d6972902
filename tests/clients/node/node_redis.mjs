// node-redis in both protocols: usage: node_redis.mjs URL
import assert from 'node:assert/strict'
import { createClient, defineScript, ErrorReply, WatchError, createClientPool } from 'redis'
import { check, eventually, main } from './checks.mjs'

function eachProtocol(name, run) {
  for (const RESP of [2, 3]) {
    check(`${name} (RESP${RESP})`, async (url, defer) => {
      const connect = async (options = {}) => {
        const client = createClient({ url, RESP, ...options })
        client.on('error', () => {})
        await client.connect()
        defer(() => client.isOpen && client.destroy())
        return client
      }
      await run(connect, { url, RESP, defer })
    })
  }
}

const blocked = (client, count) => eventually(async () => (await client.info('clients')).includes(`blocked_clients:${count}\r`))

eachProtocol('values of each type', async (connect) => {
  const client = await connect()
  assert.equal(await client.set('k', 'v', { expiration: { type: 'EX', value: 100 } }), 'OK')
  assert.equal(await client.get('k'), 'v')
  assert.equal(await client.set('k', 'w', { condition: 'NX' }), null)
  assert.equal(await client.hSet('h', { f: '1', g: 'x' }), 2)
  assert.deepEqual({ ...(await client.hGetAll('h')) }, { f: '1', g: 'x' })
  assert.equal(await client.zAdd('z', [{ score: 1.5, value: 'a' }, { score: Infinity, value: 'b' }]), 2)
  assert.deepEqual(await client.zRangeWithScores('z', 0, -1), [{ value: 'a', score: 1.5 }, { value: 'b', score: Infinity }])
  assert.equal(await client.zScore('z', 'a'), 1.5)
  assert.equal(await client.zScore('z', 'none'), null)
  assert.equal(await client.zIncrBy('z', 2, 'a'), 3.5)
  assert.equal(await client.rPush('l', ['1', '2', '3']), 3)
  assert.deepEqual(await client.lRange('l', 0, -1), ['1', '2', '3'])
  assert.equal(await client.sAdd('s', ['x', 'y']), 2)
  assert.deepEqual([...(await client.sMembers('s'))].sort(), ['x', 'y'])
  assert.deepEqual((await client.smIsMember('s', ['x', 'z'])).map(Number), [1, 0])
  assert.deepEqual(await client.mGet(['k', 'none']), ['v', null])
  assert.deepEqual({ ...(await client.configGet('maxmemory-policy')) }, { 'maxmemory-policy': 'noeviction' })
  assert.equal((await client.clientInfo()).db, 0)
  assert.equal((await client.commandInfo(['GET']))[0].arity, 2)
  await assert.rejects(client.lPush('k', '1'), (error) => error instanceof ErrorReply && error.message.startsWith('WRONGTYPE'))
  assert.ok((await client.memoryUsage('k')) > 0)
  assert.equal((await client.sendCommand(['ECHO', 'x'])), 'x')
})

eachProtocol('transactions', async (connect) => {
  const client = await connect()
  assert.deepEqual(await client.multi().set('k', 'v').incr('n').get('k').exec(), ['OK', 1, 'v'])
  await client.watch('n')
  await (await connect()).incr('n')
  await assert.rejects(client.multi().incr('n').exec(), WatchError)
  await assert.rejects(client.multi().incr('k').exec())
  assert.deepEqual(await client.multi().get('k').get('none').execAsPipeline(), ['v', null])
  assert.deepEqual(await Promise.all(Array.from({ length: 200 }, () => client.incr('m'))), Array.from({ length: 200 }, (_, n) => n + 1))
})

eachProtocol('scripts', async (connect) => {
  const add = defineScript({
    NUMBER_OF_KEYS: 1,
    SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
    parseCommand(parser, key, n) {
      parser.pushKey(key)
      parser.push(String(n))
    },
    transformReply: undefined,
  })
  const client = await connect({ scripts: { add } })
  await client.scriptFlush()
  assert.equal(await client.add('n', 5), 5)
  assert.equal(await client.add('n', 5), 10)
  await client.scriptFlush()
  assert.deepEqual(await client.multi().add('n', 1).get('n').exec(), [11, '11'])
  assert.deepEqual(await client.eval("return {1, 'x', false, {ok='fine'}}", { keys: [], arguments: [] }), [1, 'x', null, 'fine'])
  assert.deepEqual((await client.scriptExists([add.SHA1])).map(Number), [1])
})

eachProtocol('blocked clients are served', async (connect) => {
  const client = await connect()
  const pop = (await connect()).blPop(['a', 'b'], 20)
  await blocked(client, 1)
  await client.rPush('b', 'x')
  assert.deepEqual({ ...(await pop) }, { key: 'b', element: 'x' })
  const min = (await connect()).bzPopMin('z', 20)
  await blocked(client, 1)
  await client.zAdd('z', { score: 1.5, value: 'm' })
  assert.deepEqual({ ...(await min) }, { key: 'z', value: 'm', score: 1.5 })
  const read = (await connect()).xRead({ key: 's', id: '$' }, { BLOCK: 20_000 })
  await blocked(client, 1)
  const id = await client.xAdd('s', '*', { n: '1' })
  const [stream] = [await read].flat()
  assert.ok(JSON.stringify(stream).includes(id))
  assert.equal(await client.blPop('nothing', 0.05), null)
})

eachProtocol('messages reach subscribers', async (connect) => {
  const client = await connect()
  const subscriber = await connect()
  const got = []
  await subscriber.subscribe('news', (text, channel) => got.push(`${channel} ${text}`))
  await subscriber.pSubscribe('n*', (text, channel) => got.push(`pattern ${channel} ${text}`))
  await subscriber.sSubscribe('part', (text, channel) => got.push(`${channel} ${text}`))
  assert.equal(await client.publish('news', 'hello'), 2)
  assert.equal(await client.sPublish('part', 'x'), 1)
  await eventually(() => got.length === 3)
  assert.deepEqual(got, ['news hello', 'pattern news hello', 'part x'])
  assert.deepEqual(await client.pubSubChannels(), ['news'])
  assert.equal(await client.pubSubNumPat(), 1)
  await subscriber.unsubscribe()
  await subscriber.pUnsubscribe()
  await subscriber.sUnsubscribe()
  assert.equal(await subscriber.get('k'), null)
})

eachProtocol('groups share a stream', async (connect) => {
  const client = await connect()
  await client.xGroupCreate('s', 'g', '0', { MKSTREAM: true })
  const ids = [await client.xAdd('s', '*', { n: '1' }), await client.xAdd('s', '*', { n: '2' })]
  const [stream] = [await client.xReadGroup('g', 'c', { key: 's', id: '>' }, { COUNT: 5 })].flat()
  assert.ok(ids.every((id) => JSON.stringify(stream).includes(id)))
  assert.equal(await client.xAck('s', 'g', ids[0]), 1)
  const claimed = await client.xAutoClaim('s', 'g', 'd', 0, '0')
  assert.deepEqual([claimed.nextId, claimed.messages.map(({ id }) => id)], ['0-0', [ids[1]]])
  const info = await client.xInfoStream('s')
  assert.deepEqual([info.length, info.groups, info['last-generated-id']], [2, 1, ids[1]])
  assert.equal((await client.xInfoGroups('s'))[0].lag, 0)
  assert.equal((await client.xPending('s', 'g')).pending, 1)
})

eachProtocol('scans, pools and lost connections', async (connect, { url, RESP, defer }) => {
  const client = await connect({ name: 'victim', socket: { reconnectStrategy: 20 } })
  await Promise.all(Array.from({ length: 300 }, (_, n) => client.hSet('h', `f:${n}`, n)))
  const fields = new Set()
  for await (const page of client.hScanIterator('h', { COUNT: 20 })) [page].flat().forEach(({ field }) => fields.add(field))
  assert.equal(fields.size, 300)
  const admin = await connect()
  const first = await client.clientId()
  const lost = new Promise((resolve) => client.once('reconnecting', resolve))
  assert.equal(await admin.sendCommand(['CLIENT', 'KILL', 'ID', String(first)]), 1)
  await lost
  assert.equal(await client.clientGetName(), 'victim')
  assert.notEqual(await client.clientId(), first)
  const pool = await createClientPool({ url, RESP }, { minimum: 1, maximum: 3 }).connect()
  defer(() => pool.destroy())
  assert.deepEqual((await Promise.all(Array.from({ length: 30 }, () => pool.incr('n')))).sort((a, b) => a - b).at(-1), 30)
})

await main()
