# Perl's Redis: usage: perl_redis.pl URL
use strict;
use warnings;
use Redis;
use Test::More;

my ($server) = $ARGV[0] =~ m{^redis://([^/]+)};
alarm 60;
my $redis = Redis->new(server => $server, reconnect => 5, every => 20_000);
$redis->flushall;

is $redis->set(k => 'v'), 'OK', 'set';
is $redis->get('k'), 'v', 'get';
is $redis->get('missing'), undef, 'a missing key';
is $redis->rpush('l', 1, 2, 3), 3, 'rpush';
is_deeply [$redis->lrange('l', 0, -1)], [1, 2, 3], 'lrange';
$redis->hset('h', f => 1);
is_deeply {$redis->hgetall('h')}, {f => 1}, 'hgetall';
ok !eval { $redis->lpush('k', 1); 1 }, 'an error';
like $@, qr/\[lpush\] WRONGTYPE/, 'its text';
my @replies;
$redis->incr('n', sub { push @replies, $_[0] }) for 1 .. 1000;
$redis->wait_all_responses;
is_deeply \@replies, [1 .. 1000], 'a pipeline';
$redis->multi;
$redis->incr('n');
$redis->get('k');
is_deeply [$redis->exec], [1001, 'v'], 'a transaction';
is_deeply [$redis->eval("return {KEYS[1], ARGV[1], redis.call('GET', KEYS[1])}", 1, 'n', 'a')], ['n', 'a', 1001], 'a script';
is $redis->info->{redis_version}, '7.0.15', 'info';

my $subscriber = Redis->new(server => $server);
my @messages;
$subscriber->subscribe('news', sub { push @messages, [@_[0, 1]] });
$subscriber->psubscribe('n*', sub { push @messages, [@_[0, 1]] });
is $redis->publish('news', 'hello'), 2, 'publish';
$subscriber->wait_for_messages(5) while @messages < 2;
is_deeply [sort map { $_->[0] } @messages], ['hello', 'hello'], 'messages';

my $other = Redis->new(server => $server);
is $other->client_kill('ID', $redis->client_id), 1, 'a connection is ended';
is $redis->get('k'), 'v', 'and comes back';
my ($cursor, %seen) = (0);
do {
    ($cursor, my $keys) = $redis->scan($cursor);
    $seen{$_}++ for @$keys;
} while ($cursor);
is_deeply [sort keys %seen], ['h', 'k', 'l', 'n'], 'scan';
done_testing;
print 'perl_redis.pl: ', Test::More->builder->is_passing ? 'all' : 'not all', " passed\n";
