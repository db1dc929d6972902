# Ruby's redis and Sidekiq with a worker process: usage: ruby_redis.rb URL
require 'redis'
require 'sidekiq'
require 'timeout'
require 'tmpdir'

# The versions that Debian has together: Sidekiq still calls redis in the old way.
Redis.silence_deprecations = true
URL = ARGV.fetch(0)
CHECKS = []

def check(name, &body)
  CHECKS << [name, body]
end

def same(got, wanted)
  raise "got #{got.inspect}, wanted #{wanted.inspect}" unless got == wanted
end

def fails(kind, start)
  yield
rescue kind => error
  raise "#{error.message.inspect}, wanted #{start.inspect}" unless error.message.start_with?(start)
else
  raise "#{kind} was not raised"
end

def eventually(what)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 20
  until yield
    raise "#{what} did not come about" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    sleep 0.02
  end
end

check 'values of each type' do |redis|
  same redis.set('k', 'v', ex: 100), 'OK'
  same redis.get('k'), 'v'
  same redis.set('k', 'w', nx: true), false
  same redis.get('missing'), nil
  same redis.mapped_hmset('h', 'f' => 1, 'g' => 2), 'OK'
  same redis.hgetall('h'), { 'f' => '1', 'g' => '2' }
  same redis.zadd('z', [[1.5, 'a'], [2, 'b']]), 2
  same redis.zrange('z', 0, -1, with_scores: true), [['a', 1.5], ['b', 2.0]]
  same redis.zincrby('z', 1, 'a'), 2.5
  same redis.rpush('l', %w[1 2 3]), 3
  same redis.lrange('l', 0, -1), %w[1 2 3]
  same redis.sadd('s', %w[x y]), 2
  same redis.smembers('s').sort, %w[x y]
  binary = (0..255).to_a.pack('C*') * 300
  redis.set('binary', binary)
  same redis.get('binary').b, binary
  same redis.scan_each.to_a.sort, %w[binary h k l s z]
  fails(Redis::CommandError, 'WRONGTYPE') { redis.lpush('k', 1) }
  same redis.info['redis_version'], '7.0.15'
end

check 'pipelines, transactions and scripts' do |redis|
  same redis.pipelined { |pipe| pipe.incr('n'); pipe.incr('n'); pipe.get('n') }, [1, 2, '2']
  same redis.multi { |multi| multi.set('k', 'v'); multi.get('k') }, %w[OK v]
  redis.watch('n') do
    Redis.new(url: URL).incr('n')
    same redis.multi { |multi| multi.get('n') }, nil
  end
  sha = redis.script(:load, "return {KEYS[1], ARGV[1], redis.call('GET', KEYS[1])}")
  same redis.evalsha(sha, ['n'], ['a']), %w[n a 3]
  redis.script(:flush)
  fails(Redis::CommandError, 'NOSCRIPT') { redis.evalsha(sha, ['n'], ['a']) }
end

check 'blocking, messages and lost connections' do |redis|
  waiting = Thread.new { Redis.new(url: URL).blpop('l', timeout: 20) }
  eventually('a blocked client') { redis.info['blocked_clients'] == '1' }
  redis.rpush('l', 'x')
  same waiting.value, %w[l x]
  same redis.blpop('nothing', timeout: 0.1), nil
  got = []
  listener = Thread.new do
    Redis.new(url: URL).subscribe('news') do |on|
      on.message { |channel, text| got << [channel, text]; Thread.current[:done] = true }
    end
  end
  eventually('a subscriber') { redis.publish('news', 'hello') == 1 }
  eventually('a message') { got.first == %w[news hello] }
  listener.kill
  other = Redis.new(url: URL)
  first = other.client(:id)
  same redis.client(:kill, :id, first), 1
  raise 'the connection is the same' unless other.client(:id) > first
end

check 'groups share a stream' do |redis|
  redis.xgroup(:create, 's', 'g', '0', mkstream: true)
  ids = [redis.xadd('s', { n: 1 }), redis.xadd('s', { n: 2 })]
  same redis.xreadgroup('g', 'c', 's', '>')['s'].map(&:first), ids
  same redis.xack('s', 'g', ids.first), 1
  same redis.xautoclaim('s', 'g', 'd', 0, '0')['entries'], [[ids.last, { 'n' => '2' }]]
end

JOBS = <<~RUBY
  require 'sidekiq'
  Sidekiq.configure_server { |config| config.redis = { url: ENV.fetch('REDIS_URL') }; config.options[:poll_interval_average] = 1 }
  class Add
    include Sidekiq::Worker
    sidekiq_options retry: 2
    sidekiq_retry_in { 1 }
    def perform(key, n, fails)
      Sidekiq.redis do |redis|
        raise 'not yet' if redis.incr("tries:\#{key}") <= fails
        redis.incrby(key, n)
      end
    end
  end
RUBY

check 'Sidekiq does, delays and retries jobs' do |redis|
  Dir.mktmpdir do |dir|
    file = File.join(dir, 'jobs.rb')
    File.write(file, JOBS)
    Sidekiq.configure_client { |config| config.redis = { url: URL } }
    require file
    log = File.join(dir, 'log')
    pid = spawn({ 'REDIS_URL' => URL }, 'sidekiq', '-r', file, '-c', '2', chdir: dir, out: log, err: log)
    begin
      10.times { |n| Add.perform_async('sum', n, 0) }
      Add.perform_in(1, 'later', 4, 0)
      Add.perform_async('again', 5, 1)
      Sidekiq::Client.push_bulk('class' => Add, 'args' => [['bulk', 1, 0], ['bulk', 2, 0]])
      eventually('every result') { redis.mget('sum', 'later', 'again', 'bulk') == %w[45 4 5 3] }
      require 'sidekiq/api'
      eventually('every acknowledgement') { Sidekiq::Stats.new.processed >= 15 && Sidekiq::Queue.new.size.zero? }
      same Sidekiq::ProcessSet.new.size, 1
      same [Sidekiq::RetrySet.new.size, Sidekiq::ScheduledSet.new.size], [0, 0]
    rescue StandardError
      puts File.read(log)
      raise
    ensure
      Process.kill('TERM', pid)
      begin
        Timeout.timeout(15) { Process.wait(pid) }
      rescue Timeout::Error
        Process.kill('KILL', pid)
        Process.wait(pid)
      end
    end
  end
end

failed = 0
CHECKS.each do |name, body|
  redis = Redis.new(url: URL)
  redis.flushall
  Timeout.timeout(60) { body.call(redis) }
rescue StandardError => error
  failed += 1
  puts "FAILED ruby_redis.rb: #{name}: #{error.class}: #{error.message}\n#{error.backtrace.first(5).join("\n")}"
end
puts "ruby_redis.rb: #{CHECKS.size - failed} passed, #{failed} failed"
exit failed.zero?
