// The lines between a race and the program, with a peer in the program's place.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import net from 'node:net'
import path from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { RaceError, race } from 'fakeserver'
import { Redis } from 'ioredis'
import { createClient } from 'redis'

const here = path.dirname(fileURLToPath(import.meta.url))
const PROGRAM = process.env.FAKESERVER_PROGRAM

test.before(() => (process.env.FAKESERVER_PROGRAM = path.join(here, '..', 'peer.mjs')))
test.after(() => {
  if (PROGRAM === undefined) delete process.env.FAKESERVER_PROGRAM
  else process.env.FAKESERVER_PROGRAM = PROGRAM
})

function peer(scenario, ...args) {
  process.env.PEER = scenario
  return race(...args)
}

// A client that says one thing and leaves.
function say(url, word) {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), hostname, () => socket.write(`${word}\r\n`))
    socket.once('data', () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })
}

const nothing = async () => {}

test('each role runs with the URL that it is given, and both programs at once', async () => {
  let arrived = 0
  let both
  const meeting = new Promise((resolve) => (both = resolve))
  const meet = async (url, { role }) => {
    if ((arrived += 1) === 2) both()
    await meeting
    await say(url, role)
    return { role, list: [1, undefined] }
  }
  const roles = { setup: (url) => say(url, 'setup'), after: (url) => say(url, 'after').then(() => 'text') }
  const report = await peer('clean', meet, (...given) => meet(...given), roles)
  assert.deepEqual(report.arguments, ['sweep', '--host', 'setup,a=meet,b,after'])
  assert.equal(report.commands[0], 'setup')
  assert.deepEqual(report.commands.slice(1, 3).sort(), ['a', 'b'])
  assert.equal(report.commands[3], 'after')
  assert.deepEqual(
    report.answers.map(({ ended, status, output }) => [ended, status, output]),
    [
      ['setup', 0, 'undefined'],
      ['a', 0, "{ list: [ 1, undefined ], role: 'a' }"],
      ['b', 0, "{ list: [ 1, undefined ], role: 'b' }"],
      ['after', 0, 'text'],
    ],
  )
  assert.equal(report.text, 'report with 0 findings')
})

test('two of the same are told, since every schedule has a twin then', async () => {
  const report = await peer('clean', nothing, nothing)
  assert.deepEqual(report.arguments, ['sweep', '--host', 'a=nothing,b=nothing', '--same'])
})

test('options become arguments', async () => {
  const options = { only: ['isolation', 'crash'], compare: 'shape', compareOutput: false, ignore: 'job:*', ignoreFields: ['h:at', 'h:id'], healsWithin: 5000, timeLimit: 1500, patience: 100, seed: 7n, clock: new Date(1000), replay: 'isolation:a2' }
  const report = await peer('one', nothing, options)
  const expected = 'sweep --host a=nothing --only isolation,crash --compare shape --output ignore --ignore job:* --ignore-field h:at --ignore-field h:id --heals-within 5 --time-limit 1.5 --patience 100 --seed 7 --clock 1000 --replay isolation:a2'
  assert.equal(report.arguments.join(' '), expected)
})

test('what is thrown is told by name and message, whatever it is', async () => {
  const syntax = () => JSON.parse('{')
  const report = await peer('finding', syntax, () => Promise.reject(null), { check: false })
  assert.equal(report.answers[0].status, 1)
  assert.match(report.answers[0].output, /^SyntaxError: /)
  assert.deepEqual(report.answers[1], { ended: 'b', run: 2, status: 1, output: 'null' })
  await assert.rejects(peer('clean', nothing, syntax), (error) => {
    assert.match(error.message, /^`b` failed in every run, so the race shows nothing: SyntaxError: /)
    return error.cause instanceof SyntaxError
  })
})

test('an output too long to be kept is told by its digest', async () => {
  const outputs = []
  for (const last of ['x', 'y']) {
    const report = await peer('one', () => 'a'.repeat(1_000_000) + last)
    outputs.push(report.answers[0].output)
  }
  assert.ok(outputs[0].length < 70_000)
  assert.match(outputs[0], /a\.\.\. \(1000001 characters, SHA-256 [0-9a-f]{64}\)$/)
  assert.notEqual(outputs[0], outputs[1])
})

test('findings reject with the report as text, at the place of the call', async () => {
  const error = await peer('finding', nothing, nothing).catch((error) => error)
  assert.ok(error instanceof RaceError)
  assert.equal(error.name, 'RaceError')
  assert.equal(error.message, "report with 1 findings\n\nOne of these alone: race(a, b, { ..., replay: 'isolation:a2' })")
  assert.equal(error.report.findings[0].kind, 'isolation')
  assert.match(error.stack.split('\n').find((line) => line.includes(' at ')), /at peer .*host\.test\.mjs/)
  const report = await peer('finding', nothing, nothing, { check: false })
  assert.equal(report.findings.length, 1)
})

async function crashOf(client) {
  const report = await peer('crash', client)
  const again = report.commands.indexOf('again')
  assert.deepEqual(report.answers[0], { ended: 'a', run: 1, status: 1, output: report.answers[0].output })
  assert.equal(report.answers[1].status, 0)
  assert.ok(report.milliseconds < 5000, `a dead run was waited for: ${report.milliseconds} ms`)
  return report.commands.slice(again + 1).filter((command) => /SET/i.test(command)).length
}

test('a dead client does not come back in the next run: ioredis', async () => {
  let ended = 0
  const sets = await crashOf(async (url) => {
    const client = new Redis(url, { enableReadyCheck: false, disableClientInfo: true })
    client.on('error', () => {})
    try {
      await client.set('first', '1')
      await client.set('second', '1')
    } finally {
      ended += 1
      client.disconnect()
    }
  })
  assert.equal(sets, 2)
  assert.equal(ended, 1)
})

test('a dead client does not come back in the next run: node-redis', async () => {
  const sets = await crashOf(async (url) => {
    const client = createClient({ url, RESP: 2, disableClientInfo: true })
    client.on('error', () => {})
    await client.connect()
    await client.set('first', '1')
    await client.set('second', '1')
    client.destroy()
  })
  assert.equal(sets, 2)
})

test('a connection that is left open is closed, and its client hears nothing', async () => {
  let heard = 0
  const report = await peer('finding', (url) => say(url, 'a'), async (url) => {
    const client = new Redis(url, { enableReadyCheck: false, disableClientInfo: true })
    for (const event of ['error', 'close', 'reconnecting']) client.on(event, () => (heard += 1))
    await client.set('k', 'v')
  }, { check: false })
  assert.equal(report.answers[1].status, 0)
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(heard, 0)
})

test('a client that is closing hears that it is closed', async () => {
  const closed = []
  await peer('one', async (url) => {
    const client = new Redis(url, { enableReadyCheck: false, disableClientInfo: true })
    closed.push(new Promise((resolve) => client.once('end', resolve)))
    await client.set('k', 'v')
    client.disconnect()
  })
  await closed[0]
})

test('a run that has been answered is not stopped', async () => {
  const report = await peer('crossed', nothing)
  assert.deepEqual(report.answers.map(({ run, status }) => [run, status]), [[1, 0], [2, 0]])
})

test('what the program says about its arguments is the error', async () => {
  await assert.rejects(peer('usage', nothing, nothing), { name: 'Error', message: 'fakeserver: there is no kind `isolatoin`' })
})

test('an error of the setup is the cause', async () => {
  const cause = new RangeError('no such user')
  const error = await peer('unusable', nothing, nothing, { setup: () => { throw cause } }).catch((error) => error)
  assert.match(error.message, /setup failed\n`setup` failed: RangeError: no such user/)
  assert.equal(error.cause, cause)
})

test('a program that ends without a report is an error', async () => {
  await assert.rejects(peer('killed', nothing), (error) => /^fakeserver sweep ended (by SIGKILL|with status \d+) and without a report$/.test(error.message))
})

test('a program that says something else is an error', async () => {
  await assert.rejects(peer('garbage', nothing), /was not understood/)
})

test('a race ends when it is told to', async () => {
  const reason = new Error('enough')
  const abort = new AbortController()
  setTimeout(() => abort.abort(reason), 50)
  await assert.rejects(peer('silent', () => new Promise(() => {}), { signal: abort.signal }), (error) => error === reason)
  await assert.rejects(peer('silent', nothing, { signal: AbortSignal.abort(reason) }), (error) => error === reason)
})

test('what is no function and no option is refused', async () => {
  await assert.rejects(race('redis-cli'), /the first program must be a function/)
  await assert.rejects(race(nothing, nothing, { setup: 'SET k v' }), /`setup` must be a function/)
  await assert.rejects(race(nothing, { ingore: 'k' }), /there is no option `ingore`, but setup, /)
  await assert.rejects(race(nothing, {}, {}), /the second program must be a function/)
})

test('a program that is not there is named', async () => {
  process.env.FAKESERVER_PROGRAM = '/nowhere/fakeserver'
  await assert.rejects(race(nothing), /FAKESERVER_PROGRAM names \/nowhere\/fakeserver, which is not there/)
  process.env.FAKESERVER_PROGRAM = here
  await assert.rejects(race(nothing), /EACCES/)
  process.env.FAKESERVER_PROGRAM = path.join(here, '..', 'peer.mjs')
})

test('clients of dead runs do not keep the process from its end', async () => {
  const script = `
    import { race } from 'fakeserver'
    import { Redis } from 'ioredis'
    import { createClient } from 'redis'
    const clients = {
      async ioredis(url) {
        const client = new Redis(url, { enableReadyCheck: false, disableClientInfo: true })
        client.on('error', () => {})
        await client.set('first', '1')
        await client.set('second', '1')
      },
      async redis(url) {
        const client = createClient({ url, RESP: 2, disableClientInfo: true })
        client.on('error', () => {})
        await client.connect()
        await client.set('first', '1')
        await client.set('second', '1')
      },
    }
    for (const client of Object.values(clients)) await race(client)
    console.log('done')`
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: here, env: { ...process.env, PEER: 'crash' }, timeout: 60_000 })
  assert.equal((await run).stdout, 'done\n')
})
