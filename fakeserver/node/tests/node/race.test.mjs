// node:test: races that the program finds in work done by two client libraries, and repairs that it does not blame.
import assert from 'node:assert/strict'
import test from 'node:test'
import { RaceError, race } from 'fakeserver'
import { Redis } from 'ioredis'
import operations from '../operations.cjs'

const { clients, withIoredis } = operations
const schedules = (report, kind) => report.findings.filter((finding) => finding.kind === kind).map(({ schedule }) => schedule)

for (const [name, client] of Object.entries(clients)) {
  test(`a token that is read and then deleted is redeemed twice (${name})`, async () => {
    const error = await race(client.redeem, client.redeem, { setup: client.issue }).catch((error) => error)
    assert.ok(error instanceof RaceError, error)
    const [finding] = error.report.findings
    assert.equal(finding.kind, 'isolation')
    assert.equal(finding.schedule, 'isolation:a1')
    assert.deepEqual([finding.outcome.a.output, finding.outcome.b.output], ['ada', 'ada'])
    assert.match(error.message, /GETDEL/)
    assert.match(error.stack, /race\.test\.mjs/)
  })

  test(`a token that is taken at once is redeemed once (${name})`, async (t) => {
    const report = await race(client.redeemOnce, client.redeemOnce, { setup: client.issue, only: ['isolation', 'crash', 'expiry'], signal: t.signal })
    assert.deepEqual(report.findings, [])
    assert.ok(report.runs.serial > 0, report.claim)
  })

  test(`an update is lost between reading and writing (${name})`, async () => {
    const report = await race(client.sell, client.sell, { setup: client.stock, only: 'isolation', check: false })
    const [finding] = report.findings
    assert.deepEqual(finding.differences.map(({ got, expected }) => [got, expected]), [['"4"', ['"3"']]])
    const commands = ['read', 'written', 'overwritten'].map((part) => finding.steps[finding.cause[part]])
    assert.deepEqual(commands.map(({ role, command }) => `${role} ${command.toLowerCase()}`), ['a get stock', 'b set stock 4', 'a set stock 4'])
  })

  test(`a counter loses nothing (${name})`, async () => {
    await race(client.sellCounted, client.sellCounted, { setup: client.stock, only: ['isolation', 'crash'] })
  })

  test(`a schedule runs alone (${name})`, async () => {
    const report = await race(client.sell, client.sell, { setup: client.stock, replay: 'isolation:a1', check: false })
    assert.deepEqual(schedules(report, 'isolation'), ['isolation:a1'])
    assert.deepEqual(report.findings[0].outcome.keys.map(({ value }) => value), ['"4"'])
  })

  test(`a crash between two writes leaves half of the work, in a transaction it does not (${name})`, async () => {
    const report = await race(client.enqueue, { only: 'crash', after: client.jobs, check: false })
    assert.deepEqual(schedules(report, 'crash'), ['crash:a1'])
    assert.deepEqual(report.findings[0].outcome.keys.map(({ key }) => key), ['"jobs:known"'])
    await race(client.enqueueAtOnce, { only: 'crash', after: client.jobs })
  })
}

test('a client that sends a command again after its reply was lost does it twice', async () => {
  const report = await race((url) => withIoredis(url, (client) => client.incr('n')), { only: 'lost-reply', compareOutput: false, check: false })
  assert.deepEqual(schedules(report, 'lost-reply'), ['lost-reply:a0'])
  assert.deepEqual(report.findings[0].outcome.keys.map(({ value }) => value), ['"2"'])
})

test('one that waits for the other gets its turn', async () => {
  const locked = (url, { role }) =>
    withIoredis(url, async (client) => {
      while (!(await client.set('lock', role, 'PX', 10_000, 'NX'))) await new Promise((resolve) => setTimeout(resolve, 5))
      await client.set('n', Number(await client.get('n')) + 1)
      await client.del('lock')
    })
  const report = await race(locked, locked, { only: 'isolation' })
  assert.ok(report.notes.some((note) => note.startsWith('B waits for A')), report.notes.join())
})

test('code that keeps its client for good has another one in each run', async () => {
  assert.throws(() => race.url, /no function of a race is running here/)
  const kept = race.client((url) => new Redis(url).on('error', () => {}))
  const urls = new Set()
  const add = async () => {
    urls.add(race.url)
    await new Promise((resolve) => setTimeout(resolve, 1))
    await kept.set('n', Number(await kept.get('n')) + 1)
  }
  const report = await race(add, add, { only: 'isolation', check: false })
  assert.deepEqual(schedules(report, 'isolation').slice(0, 1), ['isolation:a1'])
  assert.equal(urls.size, 2)
  assert.throws(() => kept.status, /no function of a race is running here/)
})

test('the same race twice finds the same by the same schedules', async () => {
  const { sell, stock } = clients.ioredis
  const found = []
  for (let n = 0; n < 2; n += 1) {
    const { findings, runs, claim } = await race(sell, sell, { setup: stock, only: ['isolation', 'lost-reply', 'restart'], check: false })
    found.push({ runs, claim, findings: findings.map(({ schedule, outcome }) => ({ schedule, outcome })) })
  }
  assert.deepEqual(found[0], found[1])
})

test('a function that fails each time is a mistake of the test', async () => {
  const cause = new TypeError('no such method')
  const failing = (url) => withIoredis(url, (client) => client.ping().then(() => { throw cause }))
  await assert.rejects(race(failing, { only: 'crash' }), (error) => error.cause === cause && /TypeError: no such method/.test(error.message))
})
