// The double, through both clients.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import net from 'node:net'
import test from 'node:test'
import { promisify } from 'node:util'
import { startServer, useServer } from 'fakeserver'
import { Redis } from 'ioredis'
import operations from '../operations.cjs'

const { withIoredis, withNodeRedis } = operations
const server = useServer(test)

// Whether something listens at a port.
const answers = (port) =>
  new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })

async function until(condition) {
  const deadline = Date.now() + 30_000
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('it did not come about within 30 s')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

test('clients of two libraries share one server', async () => {
  await withIoredis(server.url, (client) => client.set('k', 'v'))
  assert.equal(await withNodeRedis(server.url, (client) => client.get('k')), 'v')
  assert.equal(await server.command('GET', 'k'), 'v')
  assert.deepEqual(await server.command('KEYS', '*'), ['k'])
  assert.equal(await server.command('GET', 'none'), null)
  await assert.rejects(server.command('LPUSH', 'k', 1), { name: 'ReplyError', message: /^WRONGTYPE/ })
})

test('the test before has left no key', async () => {
  assert.equal(await server.command('DBSIZE'), 0)
  await server.command('SET', Buffer.from([107, 255]), new Uint8Array([1]))
  assert.equal(await server.command('DBSIZE'), 1)
  await server.flush()
  assert.equal(await server.command('DBSIZE'), 0)
})

test('time stands, goes on at a word, and is real again', async () => {
  assert.equal(await server.clock.freeze(new Date(1_722_150_000_000)), 1_722_150_000_000)
  await withIoredis(server.url, async (client) => {
    await client.set('k', 'v', 'PX', 60_000)
    assert.equal(await server.clock.advance(59_999), 1_722_150_059_999)
    assert.equal(await client.pttl('k'), 1)
    // As in Redis a key is there until its deadline has passed.
    await server.clock.advance(1)
    assert.equal(await client.get('k'), 'v')
    await server.clock.advance(1)
    assert.equal(await client.get('k'), null)
    assert.deepEqual((await client.time()).map(Number), [1_722_150_060, 1000])
    const waits = client.blpop('list', 3600)
    await until(async () => String(await server.command('CLIENT', 'LIST')).includes('cmd=blpop'))
    await server.clock.advance(3_600_000)
    assert.equal(await waits, null)
  })
  assert.ok(Math.abs((await server.clock.real()) - Date.now()) < 60_000)
  await server.clock.freeze(0)
})

test('the test before has left no clock and no fault', async () => {
  assert.ok(Math.abs((await server.clock.now()) - Date.now()) < 60_000)
  await server.fail('*', { always: true, error: 'ERR out of order' })
  await assert.rejects(server.command('PING'), { message: 'ERR out of order' })
})

test('a command fails with an error, once and at its turn', async () => {
  await server.fail('GET', { nth: 2, error: 'LOADING Redis is loading the dataset in memory' })
  await withIoredis(server.url, async (client) => {
    assert.equal(await client.get('k'), null)
    await assert.rejects(client.get('k'), { message: /^LOADING/ })
    assert.equal(await client.get('k'), null)
  })
})

test('a reply is lost: the client sends again, and it is done twice', async () => {
  await withIoredis(server.url, async (client) => {
    await client.ping()
    await server.fail('INCR', { drop: 'after' })
    assert.equal(await client.incr('n'), 2)
    await server.fail('INCR', { drop: 'before' })
    assert.equal(await client.incr('n'), 3)
  })
})

test('a reply is late by the clock of the server', async () => {
  await server.clock.freeze()
  await server.fail('GET', { delay: 5000 })
  await withNodeRedis(server.url, async (client) => {
    let replied = false
    const reply = client.get('k').then(() => (replied = true))
    await until(async () => String(await server.command('CLIENT', 'LIST')).includes('cmd=get'))
    assert.equal(replied, false)
    await server.clock.advance(5000)
    await reply
  })
})

test('faults are counted and forgotten, and wrong ones refused', async () => {
  await server.fail('GET', { error: 'ERR no' })
  await server.fail('CONFIG|GET', { always: true, drop: 'before' })
  assert.equal(await server.clearFaults(), 2)
  assert.equal(await server.command('GET', 'k'), null)
  await assert.rejects(server.fail('GET', {}), /give one of/)
  await assert.rejects(server.fail('GET', { error: 'ERR no', delay: 1 }), /give one of/)
  await assert.rejects(server.fail('GET', { error: 'ERR no', nth: 1, always: true }), /exclude each other/)
  await assert.rejects(server.fail('NOSUCH', { error: 'ERR no' }), /there is no command 'NOSUCH'/)
})

test('a dump shows keys with their values', async () => {
  await server.command('RPUSH', 'list', 'a', 'b')
  const dump = await server.dump()
  assert.match(dump, /list/)
  assert.equal(await server.dump(), dump)
})

test('a reset leaves no setting and no connection', async () => {
  await withIoredis(server.url, async (client) => {
    await client.config('SET', 'maxmemory', '1000000')
    const closed = new Promise((resolve) => client.once('close', resolve))
    await server.reset()
    await closed
  })
  assert.deepEqual(await server.command('CONFIG', 'GET', 'maxmemory'), ['maxmemory', '0'])
})

test('port, password, seed and clock are as asked for', async () => {
  const draws = []
  for (let n = 0; n < 2; n += 1) {
    const own = await startServer({ password: 'p@ss', seed: 7n, clock: 1000, enableDebugCommand: true })
    assert.equal(own.url, `redis://:p%40ss@127.0.0.1:${own.port}`)
    assert.equal(own.host, '127.0.0.1')
    assert.equal(await withIoredis(own.url, (client) => client.ping()), 'PONG')
    assert.equal(await withNodeRedis(own.url, (client) => client.ping()), 'PONG')
    await assert.rejects(withIoredis(`redis://127.0.0.1:${own.port}`, (client) => client.call('PING')), /NOAUTH/)
    assert.equal(await own.clock.now(), 1000)
    await own.clock.advance(5)
    await own.reset()
    assert.equal(await own.clock.now(), 1000)
    assert.equal(await own.command('DEBUG', 'SLEEP', '0'), 'OK')
    await own.command('SADD', 's', ...Array(100).keys())
    draws.push(await own.command('SRANDMEMBER', 's', 10))
    await own.stop()
    await own.stop()
    assert.throws(() => own.url, /the server is not running/)
    await assert.rejects(own.dump(), /the server is not running/)
  }
  assert.deepEqual(draws[0], draws[1])
})

test('a port that is taken is told with its reason', async () => {
  await assert.rejects(startServer({ port: server.port }), /fakeserver ended with status 2 at its start: .*in use/)
  await assert.rejects(startServer({ prot: 1 }), /there is no option `prot` of a server, but port, /)
})

test('a server is stopped by what disposes of it', { skip: !Symbol.asyncDispose }, async () => {
  const own = await startServer()
  const { port } = own
  await own[Symbol.asyncDispose]()
  assert.equal(await answers(port), false)
})

test('hooks are those of a framework', () => {
  assert.throws(() => useServer({}), /useServer needs the hooks of a test framework/)
})

test('a server that nobody stops keeps no process from its end, and ends with it', async () => {
  const script = `
    import { startServer } from 'fakeserver'
    const server = await startServer()
    await server.command('SET', 'k', 'v')
    console.log(server.port)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: import.meta.dirname ?? process.cwd(), timeout: 60_000 })
  await until(async () => !(await answers(Number(stdout))))
})

test('a server ends with a process that is killed', async () => {
  const script = `
    import { startServer } from 'fakeserver'
    console.log((await startServer()).port)
    setInterval(() => {}, 1000)`
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: import.meta.dirname ?? process.cwd(), stdio: ['ignore', 'pipe', 'inherit'] })
  const port = Number(await new Promise((resolve) => parent.stdout.once('data', (bytes) => resolve(String(bytes)))))
  assert.equal(await answers(port), true)
  parent.kill('SIGKILL')
  await until(async () => !(await answers(port)))
})

test('two servers share nothing', async () => {
  const other = await startServer()
  test.after(() => other.stop())
  const client = new Redis(server.url)
  await client.watch('k')
  await other.command('SET', 'k', 'elsewhere')
  assert.deepEqual(await client.multi().set('k', 'v').exec(), [[null, 'OK']])
  client.disconnect()
})
